// Runs cells of scenarios in the playground's engine, a tenth of a second at a time as a page does:
// node cell.mjs MODULE.wasm <SCENARIOS.json
//
// SCENARIOS is a list of [text, cells]. Prints a line of JSON per cell: {"refused": "", "tables": {name: CSV}}, or what is wrong.
import { readFileSync } from "node:fs";
import { TABLES, joined, loadEngine } from "../../site/play/engine.mjs";

const engine = await loadEngine(readFileSync(process.argv[2]));
const STEP_NS = 1e8;

for (const [scenario, cells] of JSON.parse(readFileSync(0, "utf-8"))) {
	for (let cell = 0; cell < cells; cell++) {
		const refused = engine.open(scenario, cell, -1);
		const whole = Object.fromEntries(TABLES.map((name) => [name, ""]));
		const add = ({ tables, over }) => {
			for (const name of TABLES) whole[name] = joined(whole[name], tables[name]);
			return over;
		};
		for (let until = STEP_NS; !refused && !add(engine.step(until)); until += STEP_NS);
		if (!refused) add(engine.finish());
		console.log(JSON.stringify({ refused, tables: whole }));
	}
}
