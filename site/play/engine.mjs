// The engine of the command line as WebAssembly: a scenario's text goes in, tables come out step by step.
// Its functions are those of crates/engine/examples/cell.rs.

export const TABLES = ["flows", "samples", "queue", "events"];
const REFUSED = 2;

export const STOPPED = "The engine stopped at an error of its own. Load the page again; the command `knee run` says more of this scenario.";

// A table with the rows of a further step. One without rows names columns that the run may not keep.
export function joined(table, step) {
  const rows = step.slice(step.indexOf("\n") + 1);
  const isEmpty = table.indexOf("\n") === table.length - 1;
  return isEmpty ? (rows === "" && table !== "" ? table : step) : table + rows;
}

export async function loadEngine(bytes) {
  // No imports: the module gets no clock, file or source of chance, and could not be instantiated if it asked for one.
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const { memory, room, open, steer, step, finish, release } = instance.exports;

  function said(answer) {
    // Memory may have grown, which detaches every view that was made before.
    const head = new DataView(memory.buffer, answer, 8);
    const what = head.getUint32(4, true);
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, answer + 8, head.getUint32(0, true)));
    release(answer);
    return { what, text };
  }

  function tables({ what, text }) {
    // Each ends with its last line; of that the empty line between two of them took the end.
    const parts = text === "" ? TABLES.map(() => "") : text.replace(/\n$/, "").split("\n\n").map((part) => `${part}\n`);
    return { over: what !== 0, tables: Object.fromEntries(TABLES.map((name, i) => [name, parts[i]])) };
  }

  // The one door to the module, which cannot go on after a trap: from then on it stays shut.
  let stopped = false;
  function through(act, otherwise) {
    try {
      if (!stopped) return act();
    } catch {
      stopped = true;
    }
    return otherwise;
  }
  const NOTHING = { over: false, tables: {} };

  return {
    // After a trap: `open` says so, and no step has rows any more.
    hasStopped: () => stopped,
    // What is wrong with the scenario, or "". `steered`: the index of the flow whose window `steer` sets, or -1.
    open: (scenario, cell, steered) =>
      through(() => {
        const text = new TextEncoder().encode(scenario);
        const at = room(text.length);
        new Uint8Array(memory.buffer, at, text.length).set(text);
        const { what, text: error } = said(open(at, text.length, cell, steered));
        return what === REFUSED ? error : "";
      }, STOPPED),
    steer: (segments) => through(() => steer(segments)),
    step: (untilNs) => through(() => tables(said(step(untilNs))), NOTHING),
    finish: () => through(() => tables(said(finish())), NOTHING),
  };
}
