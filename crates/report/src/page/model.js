// The model: a snapshot in the form that the page uses.
//
// A strip is one VkDeviceMemory: a block with its chunks, or a dedicated allocation, which is a strip with one chunk.
// Sums are computed over the drawn chunks, so that figures and map always agree.

class Sums {
  constructor() {
    this.reserved = 0;
    this.used = 0;
    this.free = 0;
    this.largestFree = 0;
    this.freeRanges = 0;
    this.allocations = 0;
    this.blocks = 0;
    this.dedicated = 0;
  }

  addStrip(strip) {
    this.blocks += 1;
    this.dedicated += strip.dedicated ? 1 : 0;
    this.reserved += strip.size;
    for (const chunk of strip.chunks) {
      if (chunk.allocation) {
        this.allocations += 1;
        this.used += chunk.size;
      } else {
        this.free += chunk.size;
        this.freeRanges += 1;
        this.largestFree = Math.max(this.largestFree, chunk.size);
      }
    }
  }

  add(other) {
    for (const key of ['reserved', 'used', 'free', 'freeRanges', 'allocations', 'blocks', 'dedicated']) this[key] += other[key];
    this.largestFree = Math.max(this.largestFree, other.largestFree);
  }
}

class Chunk {
  constructor(strip, offset, size, allocation) {
    this.strip = strip;
    this.offset = offset;
    this.size = size;
    this.allocation = allocation;
    this.isMatch = true;
    // True if the other snapshot lacks it.
    this.isOnlyHere = false;
    // True if the other snapshot has it at another place.
    this.isMoved = false;
  }

  get name() {
    return this.allocation ? this.allocation.name : null;
  }

  get end() {
    return this.offset + this.size;
  }
}

class Strip {
  constructor(vector, number, raw, dedicated) {
    this.vector = vector;
    this.number = number;
    this.size = raw.size;
    this.mapCount = raw.map_count;
    // The name of a foreign program's memory.
    this.name = raw.name || null;
    this.dedicated = dedicated;
    this.chunks = dedicated
      ? [new Chunk(this, 0, raw.size, raw.allocation)]
      : raw.chunks.map((chunk) => new Chunk(this, chunk.offset, chunk.size, chunk.allocation));
    this.used = this.chunks.reduce((sum, chunk) => sum + (chunk.allocation ? chunk.size : 0), 0);
  }

  get title() {
    const title = this.dedicated ? 'dedicated' : `block ${this.number}`;
    return this.name ? `${title} “${printable(this.name)}”` : title;
  }

  // The index of the chunk that holds a byte.
  indexAt(byte) {
    let low = 0;
    let high = this.chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.chunks[middle].offset <= byte) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

class Vector {
  // `figures`: the library's fragmentation figures.
  constructor(raw, types, figures) {
    this.figures = figures;
    this.memoryType = raw.memory_type;
    this.heap = raw.heap;
    this.pool = raw.pool;
    this.poolName = raw.name;
    this.algorithm = raw.algorithm;
    this.blockSize = raw.block_size;
    // Equal for the same vector in two snapshots: one with the same number, memory type and name, as in the library.
    this.key = JSON.stringify([this.pool, this.memoryType, this.poolName]);
    const type = types[raw.memory_type];
    this.flags = type ? type.flags : [];
    const shared = raw.blocks.map((block) => new Strip(this, block.id, block, false));
    this.strips = shared.concat(raw.dedicated.map((dedicated) => new Strip(this, null, dedicated, true)));
    this.sums = new Sums();
    for (const strip of this.strips) this.sums.addStrip(strip);
  }

  // In the order of the map.
  get chunks() {
    return this.strips.flatMap((strip) => strip.chunks);
  }

  get isPool() {
    return this.pool !== null && this.pool !== undefined;
  }

  // The name: a pool's name or number, or the memory type of a default vector.
  get title() {
    if (!this.isPool) return `Memory type ${this.memoryType}`;
    return this.poolName ? `Pool ${printable(this.poolName)}` : `Pool ${this.pool}`;
  }

  // The name with the memory type.
  get place() {
    return this.isPool ? `${this.title} (type ${this.memoryType})` : this.title;
  }
}

class Model {
  constructor(raw, figures) {
    this.figures = figures.total;
    this.vectors = raw.vectors.map((vector, at) => new Vector(vector, raw.types, figures.vectors[at]));
    this.chunks = this.vectors.flatMap((vector) => vector.chunks);
    this.allocations = this.chunks.filter((chunk) => chunk.allocation);
    this.total = new Sums();
    this.heaps = raw.heaps.map((heap, index) => {
      const sums = new Sums();
      for (const vector of this.vectors) if (vector.heap === index) sums.add(vector.sums);
      return { ...heap, index, sums };
    });
    for (const vector of this.vectors) this.total.add(vector.sums);
  }
}

// Sums of bytes by a property of allocations, the largest first. Allocations without it are under `null`.
function sumsBy(chunks, keyOf) {
  const sums = new Map();
  for (const chunk of chunks) {
    const key = keyOf(chunk);
    let entry = sums.get(key);
    if (!entry) {
      entry = { key, bytes: 0, count: 0, largest: 0 };
      sums.set(key, entry);
    }
    entry.bytes += chunk.size;
    entry.count += 1;
    entry.largest = Math.max(entry.largest, chunk.size);
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes);
}
