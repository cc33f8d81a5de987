// The search box: turns a query into a function that returns true for matching chunks.

const SIZE = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i;
const FACTORS = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

// "1.5M" in bytes; null if it is not a size.
function readSize(text) {
  const parts = SIZE.exec(text);
  return parts ? Number(parts[1]) * FACTORS[parts[2].toLowerCase()] : null;
}

// Words and quoted texts, each with its sign and its field. A quote inside quotes is doubled.
function readWords(query) {
  const words = [];
  const pattern = /(-?)(?:([a-z]+):)?(?:"((?:[^"]|"")*)"?|(\S+))/gi;
  for (const [, minus, field, quoted, plain] of query.matchAll(pattern)) {
    const text = quoted !== undefined ? quoted.replace(/""/g, '"') : plain;
    if (text !== '') words.push({ not: minus === '-', field: field ? field.toLowerCase() : null, text, quoted: quoted !== undefined });
  }
  return words;
}

function has(value, wanted) {
  return value !== null && value !== undefined && String(value).toLowerCase().includes(wanted);
}

const PLACES = {
  name: (chunk) => chunk.allocation.name,
  kind: (chunk) => chunk.allocation.kind,
  role: (chunk) => roleOf(chunk.allocation),
  usage: (chunk) => usageNames(chunk.allocation.kind, chunk.allocation.usage).join(' '),
  caller: (chunk) => chunk.allocation.caller,
  pool: (chunk) => (chunk.strip.vector.isPool ? `${chunk.strip.vector.poolName || ''} ${chunk.strip.vector.pool}` : null),
  id: (chunk) => chunk.allocation.id,
  user: (chunk) => chunk.allocation.user_data,
};
// Queries without a field do not search the usage, because nearly everything is a TRANSFER_DST.
const EVERYWHERE = ['name', 'kind', 'caller', 'pool', 'id', 'user'];

const NUMBERS = {
  type: (chunk) => chunk.strip.vector.memoryType,
  heap: (chunk) => chunk.strip.vector.heap,
  block: (chunk) => chunk.strip.number,
};

const STATES = {
  free: (chunk) => !chunk.allocation,
  used: (chunk) => Boolean(chunk.allocation),
  dedicated: (chunk) => chunk.strip.dedicated,
  mapped: (chunk) => chunk.strip.mapCount > 0,
  unnamed: (chunk) => chunk.allocation !== null && !chunk.allocation.name,
  'no-caller': (chunk) => chunk.allocation !== null && !chunk.allocation.caller,
  new: (chunk) => chunk.isOnlyHere,
  gone: (chunk) => chunk.isOnlyHere,
  moved: (chunk) => chunk.isMoved,
};

// A size expression; null if the text is not one.
function sizeTest(text) {
  const range = text.split('..');
  if (range.length === 2) {
    const [low, high] = range.map(readSize);
    return low === null || high === null ? null : (chunk) => chunk.size >= low && chunk.size <= high;
  }
  const parts = /^(>=|<=|>|<|=)(.+)$/.exec(text);
  const size = parts ? readSize(parts[2]) : null;
  if (size === null) return null;
  return {
    '>': (chunk) => chunk.size > size,
    '>=': (chunk) => chunk.size >= size,
    '<': (chunk) => chunk.size < size,
    '<=': (chunk) => chunk.size <= size,
    '=': (chunk) => chunk.size === size,
  }[parts[1]];
}

function wordTest(word) {
  const wanted = word.text.toLowerCase();
  if (!word.quoted && !word.field) {
    const test = sizeTest(word.text);
    if (test) return test;
  }
  if (word.field === 'is' && STATES[wanted]) return STATES[wanted];
  if (word.field && NUMBERS[word.field]) return (chunk) => String(NUMBERS[word.field](chunk)) === wanted;
  if (word.field && PLACES[word.field]) return (chunk) => chunk.allocation !== null && has(PLACES[word.field](chunk), wanted);
  // Names may contain colons, so an unknown field is text.
  const text = word.field ? `${word.field}:${wanted}` : wanted;
  return (chunk) => chunk.allocation !== null && EVERYWHERE.some((place) => has(PLACES[place](chunk), text));
}

// The function for a query; null for an empty one. Free ranges match only if the query asks for them.
function readQuery(query) {
  const words = readWords(query);
  if (words.length === 0) return null;
  const wantsFree = words.some((word) => !word.not && word.field === 'is' && word.text.toLowerCase() === 'free');
  const tests = words.map((word) => {
    const test = wordTest(word);
    return word.not ? (chunk) => !test(chunk) : test;
  });
  return (chunk) => (chunk.allocation !== null || wantsFree) && tests.every((test) => test(chunk));
}
