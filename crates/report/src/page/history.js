// A recording: device memory and allocations with the moments between which they exist. A moment is a number from 0.

// The running sums of differences.
function running(differences) {
  const sums = new Float64Array(differences.length);
  let sum = 0;
  differences.forEach((difference, at) => {
    sum += difference;
    sums[at] = sum;
  });
  return sums;
}

// The moments at which something ends: `Infinity` if it never does.
function endsOf(from, life) {
  return Float64Array.from(from, (start, at) => (life[at] === 0 ? Infinity : start + life[at]));
}

function withSpans(raw) {
  const from = running(raw.from);
  return { ...raw, count: raw.from.length, from, to: endsOf(from, raw.life) };
}

// The last index whose value is at most `wanted`; 0 if there is none.
function lastUpTo(values, wanted) {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle] <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}

// An allocation at a moment, with the properties of a snapshot's entry. It holds only its place in the lists, because a
// large recording has many.
class HistoryEntry {
  constructor(history, at) {
    this.history = history;
    this.placed = at;
  }

  get number() {
    return this.history.placed.number[this.placed];
  }

  get id() {
    return this.history.idOf(this.number);
  }

  get use() {
    const { placed, raw } = this.history;
    return raw.uses[placed.what[this.placed]];
  }

  get kind() {
    return this.use[0];
  }

  get usage() {
    return this.use[1];
  }

  get name() {
    return this.history.textOf(this.history.placed.name[this.placed]);
  }

  get note() {
    return this.history.textOf(this.history.placed.note[this.placed]);
  }

  get user_data() {
    return null;
  }

  get caller() {
    return null;
  }
}

class History {
  constructor(raw) {
    this.raw = raw;
    this.calls = raw.calls;
    this.call = running(raw.moments.call);
    this.time = running(raw.moments.time);
    this.last = this.time.length - 1;
    this.memories = withSpans(raw.memories);
    this.placed = withSpans(raw.placed);
    this.frames = { moment: running(raw.frames.moment), number: raw.frames.number };
    this.failures = running(raw.failures);
    this.budgets = { ...raw.budgets, moment: running(raw.budgets.moment) };
    this.driver = { ...raw.driver, moment: running(raw.driver.moment) };
    this.heaps = raw.heaps.map((heap, index) => ({
      ...heap,
      index,
      ...this.seriesOf(index),
      budgets: this.stepsOf(this.budgets, index, heap.budget),
      driver: this.stepsOf(this.driver, index, 0),
    }));
  }

  // The sums of a heap as pairs of a moment and the bytes from then on.
  stepsOf(columns, heap, first) {
    const steps = [[0, first]];
    columns.moment.forEach((moment, at) => {
      if (columns.heap[at] === heap) steps.push([moment, columns.bytes[at]]);
    });
    return steps;
  }

  heapOf(memory) {
    return this.raw.vectors[this.memories.vector[memory]].heap;
  }

  // Bytes of a heap at each moment, and their peaks.
  seriesOf(heap) {
    const { memories, placed, raw } = this;
    const used = new Float64Array(this.last + 2);
    const reserved = new Float64Array(this.last + 2);
    const add = (bytesAt, spans, at) => {
      bytesAt[spans.from[at]] += spans.size[at];
      if (spans.to[at] !== Infinity) bytesAt[spans.to[at]] -= spans.size[at];
    };
    for (let at = 0; at < memories.count; at += 1) if (this.heapOf(at) === heap) add(reserved, memories, at);
    for (let at = 0; at < placed.count; at += 1) if (this.heapOf(placed.memory[at]) === heap) add(used, placed, at);
    // Bytes that are left out of the map are sums already.
    const hidden = { ...raw.hidden, moment: running(raw.hidden.moment) };
    let [usedBefore, reservedBefore] = [0, 0];
    hidden.moment.forEach((moment, at) => {
      if (hidden.heap[at] !== heap) return;
      used[moment] += hidden.used[at] - usedBefore;
      reserved[moment] += hidden.reserved[at] - reservedBefore;
      [usedBefore, reservedBefore] = [hidden.used[at], hidden.reserved[at]];
    });
    const sums = { used: running(used), reserved: running(reserved) };
    const most = (series) => series.reduce((peak, value) => Math.max(peak, value), 0);
    return { ...sums, peakUsed: most(sums.used), peakReserved: most(sums.reserved) };
  }

  // Bytes of a full row of the map, equal for all moments: see `bytesOfRow`.
  get rowBytes() {
    const { dedicated, size } = this.memories;
    const largest = size.reduce((most, bytesOf) => Math.max(most, bytesOf), 1);
    const largestBlock = size.reduce((most, bytesOf, at) => (dedicated[at] === 1 ? most : Math.max(most, bytesOf)), 0);
    return largestBlock === 0 ? largest : Math.max(largestBlock, Math.ceil(largest / 16));
  }

  // The first moment with the most reserved memory; of several, that with the most in use.
  get peak() {
    const sum = (key, moment) => this.heaps.reduce((all, heap) => all + heap[key][moment], 0);
    let best = { moment: 0, reserved: -1, used: -1 };
    for (let moment = 0; moment <= this.last; moment += 1) {
      const [reserved, used] = [sum('reserved', moment), sum('used', moment)];
      if (reserved > best.reserved || (reserved === best.reserved && used > best.used)) best = { moment, reserved, used };
    }
    return best.moment;
  }

  // The frame at a moment; null before the first.
  frameAt(moment) {
    const { moment: starts, number } = this.frames;
    if (starts.length === 0 || starts[0] > moment) return null;
    return number[lastUpTo(starts, moment)];
  }

  // The contents at a moment, in the form of a snapshot.
  at(moment) {
    const { memories, placed, raw } = this;
    const isLive = (spans, at) => spans.from[at] <= moment && spans.to[at] > moment;
    const held = new Map();
    for (let at = 0; at < memories.count; at += 1) if (isLive(memories, at)) held.set(at, []);
    for (let at = 0; at < placed.count; at += 1) {
      if (!isLive(placed, at)) continue;
      const inMemory = held.get(placed.memory[at]);
      if (inMemory) inMemory.push(at);
    }
    const vectors = raw.vectors.map((vector) => ({ ...vector, blocks: [], dedicated: [] }));
    const usage = raw.heaps.map(() => 0);
    for (const [memory, inMemory] of held) {
      const vector = vectors[memories.vector[memory]];
      const size = memories.size[memory];
      usage[vector.heap] += size;
      const name = this.textOf(memories.name[memory]);
      if (memories.dedicated[memory] === 1 && inMemory.length === 1) {
        vector.dedicated.push({ size, name, allocation: new HistoryEntry(this, inMemory[0]) });
      } else {
        vector.blocks.push({ id: memories.number[memory], size, name, chunks: this.chunksOf(inMemory, size) });
      }
    }
    for (const vector of vectors) vector.blocks.sort((a, b) => a.id - b.id);
    const budgetAt = ({ budgets }) => budgets[lastUpTo(budgets.map(([start]) => start), moment)][1];
    const heaps = raw.heaps.map((heap, index) => ({ ...heap, budget: budgetAt(this.heaps[index]), usage: usage[index] }));
    return { title: null, device: raw.device, heaps, types: raw.types, vectors };
  }

  // The allocations of a block in order, with the free ranges between them. Of overlapping ones, the first is shown
  // whole, and the rest of the others.
  chunksOf(inMemory, size) {
    const { offset, size: sizes } = this.placed;
    const chunks = [];
    let end = 0;
    const free = (to) => {
      if (to > end) chunks.push({ offset: end, size: to - end, allocation: null });
    };
    inMemory.sort((a, b) => offset[a] - offset[b] || sizes[b] - sizes[a]);
    for (const at of inMemory) {
      const entry = new HistoryEntry(this, at);
      const [from, to] = [Math.max(offset[at], end), Math.min(offset[at] + sizes[at], size)];
      if (to <= from) {
        const under = chunks.length > 0 && chunks[chunks.length - 1].allocation;
        if (under) under.others = (under.others || []).concat(entry);
        continue;
      }
      free(from);
      chunks.push({ offset: from, size: to - from, allocation: entry });
      end = to;
    }
    free(size);
    return chunks;
  }

  // The life of a chunk, for the inspector.
  factsOf({ allocation }) {
    if (!allocation) return [];
    const { from, to } = this.placed;
    const nameOf = (moment) => `${duration(this.time[moment])}, call ${exact(this.call[moment])}`;
    const facts = [['From', nameOf(from[allocation.placed])]];
    facts.push(['Until', to[allocation.placed] === Infinity ? 'the end' : nameOf(to[allocation.placed])]);
    if (allocation.others) facts.push(['Overlaps', allocation.others.map((other) => printable(other.name || other.id)).join(', ')]);
    return facts;
  }

  textOf(number) {
    return number === 0 ? null : this.raw.texts[number - 1];
  }

  // The memory or the resource that a label of a finding names, and the moments at which it is there; null for others.
  // `has(chunk)` is true for its chunk in the map.
  objectOf(label, moment) {
    const { memories, placed, raw } = this;
    const found = raw.is_foreign ? /^(memory|resource) (\d+)(?: |$)/.exec(label) : /^(Pool|Memory type) (\d+).*, block (\d+)$/.exec(label);
    if (!found) return null;
    const of = Number(found[2]);
    const number = raw.is_foreign ? of : Number(found[3]);
    const isMemory = found[1] !== 'resource';
    const spans = isMemory ? memories : placed;
    const isIn = ({ pool, memory_type: type }) => (found[1] === 'Pool' ? pool === of : pool === null && type === of);
    const isIt = (at) => {
      if (!isMemory) return placed.number[at] % 16 !== 15 && Math.floor(placed.number[at] / 16) === number;
      return memories.number[at] === number && (raw.is_foreign || (memories.dedicated[at] === 0 && isIn(raw.vectors[memories.vector[at]])));
    };
    let first = null;
    for (let at = 0; at < spans.count; at += 1) {
      if (!isIt(at)) continue;
      if (spans.from[at] <= moment && spans.to[at] > moment) {
        first = at;
        break;
      }
      if (first === null) first = at;
    }
    if (first === null) return null;
    const vector = isMemory ? raw.vectors[memories.vector[first]] : null;
    const isInMemory = ({ allocation, strip }) => (strip.dedicated
      ? placed.memory[allocation.placed] === first
      : strip.number === number && strip.vector.memoryType === vector.memory_type && strip.vector.pool === vector.pool);
    return { from: spans.from[first], to: spans.to[first], has: isMemory ? isInMemory : ({ allocation }) => allocation !== null && allocation.placed === first };
  }

  // As in a snapshot of the same recording.
  idOf(number) {
    if (!this.raw.is_foreign) return `#${number}`;
    const [of, part] = [Math.floor(number / 16), number % 16];
    if (part === 15) return `memory ${of}`;
    return part === 0 ? `resource ${of}` : `resource ${of} plane ${part - 1}`;
  }
}

// The figures of a snapshot from a history. See `Fragmentation` of the library.
function figuresOf(snapshot) {
  const figures = ({ free, inLargest, blocks, bytesOfBlocks }) => (
    { scatter: free === 0 ? 0 : 1 - inLargest / free, empty_blocks: blocks, empty_bytes: bytesOfBlocks });
  const all = { free: 0, inLargest: 0, blocks: 0, bytesOfBlocks: 0 };
  const vectors = snapshot.vectors.map((vector) => {
    const own = { free: 0, inLargest: 0, blocks: 0, bytesOfBlocks: 0 };
    for (const block of vector.blocks) {
      const free = block.chunks.filter((chunk) => !chunk.allocation).map((chunk) => chunk.size);
      const isEmpty = free.length === block.chunks.length;
      own.free = free.reduce((sum, size) => sum + size, own.free);
      own.inLargest = free.reduce((most, size) => Math.max(most, size), own.inLargest);
      own.blocks += isEmpty ? 1 : 0;
      own.bytesOfBlocks += isEmpty ? block.size : 0;
    }
    for (const key of Object.keys(all)) all[key] += own[key];
    return figures(own);
  });
  return { total: figures(all), vectors };
}

// "1.25 s": at most three digits.
function duration(nanos) {
  const [unit, factor] = nanos < 1e3 ? ['ns', 1] : nanos < 1e6 ? ['µs', 1e3] : nanos < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const value = nanos / factor;
  if (unit === 's' && value >= 600) return `${(value / 60).toFixed(1).replace(/\.0$/, '')} min`;
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${factor === 1 ? value : value.toFixed(digits).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')} ${unit}`;
}
