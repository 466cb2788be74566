// Packed tables -> columns. packing.py says how they are packed.

class Table {
  constructor(rows, columns) {
    this.rows = rows;
    this.columns = columns;
    this.names = [...columns.keys()];
  }

  has(name) { return this.columns.has(name); }

  // The value of a column in a row; null where it is unknown.
  value(name, row) {
    const column = this.columns.get(name);
    if (!column || (column.nulls && column.nulls[row])) return null;
    const number = column.numbers[row];
    if (column.kind === "bool") return number === 1;
    return column.words ? column.words[number] : number;
  }

  // The same table with other numbers in a column.
  with(name, change) {
    const column = this.columns.get(name);
    return new Table(this.rows, new Map([...this.columns, [name, { ...column, numbers: column.numbers.map(change) }]]));
  }

  row(number) { return Object.fromEntries(this.names.map((name) => [name, this.value(name, number)])); }
}

async function inflated(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpacked(text, words) {
  const body = await inflated(text);
  const length = new DataView(body.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(body.subarray(4, 4 + length)));
  const columns = new Map();
  let at = 4 + length;
  for (const entry of header.columns) {
    const column = { kind: entry.kind, words: entry.kind === "word" ? words : entry.words, nulls: null };
    if (entry.nulls) {
      column.nulls = body.subarray(at, at + header.rows);
      at += header.rows;
    }
    const planes = body.subarray(at, at + entry.width * header.rows);
    column.numbers = entry.kind === "float" ? floats(planes, header.rows) : integers(planes, header.rows, entry.width);
    at += planes.length;
    columns.set(entry.name, column);
  }
  return new Table(header.rows, columns);
}

function integers(planes, rows, width) {
  const found = new Float64Array(rows);
  let last = 0;
  for (let row = 0; row < rows; row++) {
    let folded = 0;
    for (let plane = width - 1; plane >= 0; plane--) folded = folded * 256 + planes[plane * rows + row];
    const odd = folded % 2;
    last += odd ? -(folded + 1) / 2 : folded / 2;
    found[row] = last;
  }
  return found;
}

function floats(planes, rows) {
  const bytes = new Uint8Array(rows * 8);
  for (let plane = 0; plane < 8; plane++) {
    for (let row = 0; row < rows; row++) bytes[row * 8 + plane] = planes[plane * rows + row];
  }
  return new Float64Array(bytes.buffer);
}
