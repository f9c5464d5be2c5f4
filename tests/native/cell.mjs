// Runs cells of a scenario in the facade's WebAssembly module: node cell.mjs MODULE.wasm CELLS <SCENARIO.toml
//
// Prints a line of JSON per cell, {"refused": false, "text": its tables as CSV} or {"refused": true, "text": what is wrong}.
import { readFileSync } from "node:fs";

const [file, cells] = process.argv.slice(2);
const scenario = readFileSync(0);

// No imports: the module gets no clock, file or source of chance, and could not be instantiated if it asked for one.
const { instance } = await WebAssembly.instantiate(readFileSync(file), {});
const { memory, room, run, release } = instance.exports;

for (let cell = 0; cell < Number(cells); cell++) {
	const text = room(scenario.length);
	new Uint8Array(memory.buffer, text, scenario.length).set(scenario);
	const answer = run(text, scenario.length, cell);
	// Memory may have grown, which detaches every view that was made before.
	const head = new DataView(memory.buffer, answer, 8);
	const bytes = new Uint8Array(memory.buffer, answer + 8, head.getUint32(0, true));
	console.log(JSON.stringify({ refused: head.getUint32(4, true) === 1, text: new TextDecoder().decode(bytes) }));
	release(answer);
}
