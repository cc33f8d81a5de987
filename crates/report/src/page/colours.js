// Colours. Reads the style sheet's colours for light and dark mode, and assigns them.

const KINDS = {
  BUFFER: 'Buffers',
  IMAGE_OPTIMAL: 'Images, optimal',
  IMAGE_LINEAR: 'Images, linear',
  IMAGE_UNKNOWN: 'Images, tiling unknown',
  UNKNOWN: 'Memory of no known use',
};
const NAME_COLOURS = 16;
// Variants of each colour, unchanged, lighter and darker: the colour that is mixed in, and its share.
const SHADES = [[0, 0], [255, 0.42], [0, 0.27]];
// The share of the free memory's colour in faded chunks.
const FADED = 0.86;

// FNV-1a: a name has the same colour in every page.
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  // The low bits alone are weak for short names.
  return (hash ^ (hash >>> 15)) >>> 0;
}

// Dark or light text on a colour, by its luminance.
function inkOn(colour) {
  const [red, green, blue] = channelsOf(colour).map((channel) => channel / 255);
  return 0.2126 * red ** 2.2 + 0.7152 * green ** 2.2 + 0.0722 * blue ** 2.2 > 0.26 ? '#15181c' : '#ffffff';
}

function channelsOf(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

// A colour mixed with a share of another colour, or of a grey.
function shaded(colour, [other, share]) {
  const others = typeof other === 'string' ? channelsOf(other) : [other, other, other];
  const channels = channelsOf(colour).map((channel, at) => Math.round(channel * (1 - share) + others[at] * share));
  return `#${channels.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}

class Palette {
  constructor() {
    this.read();
  }

  // Also when the colour scheme changes.
  read() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(`--${name}`).trim();
    this.kinds = {};
    for (const kind of Object.keys(KINDS)) this.kinds[kind] = value(`kind-${kind.toLowerCase().replace('_', '-')}`);
    const names = Array.from({ length: NAME_COLOURS }, (_, at) => value(`name-${at}`));
    this.names = SHADES.map((shade) => names.map((colour) => shaded(colour, shade))).flat();
    this.roles = {};
    for (const role of Object.keys(ROLES)) this.roles[role] = value(`role-${role}`);
    this.reserved = value('gauge-reserved');
    this.used = value('gauge-used');
    this.warning = value('warning');
    this.selection = value('selection');
    this.unnamed = value('unnamed');
    this.free = value('free');
    this.hatch = value('hatch');
    this.edge = value('edge');
    this.ink = value('ink');
    this.soft = value('ink-soft');
    this.mark = value('mark');
    this.inks = new Map();
    this.fadeds = new Map();
  }

  byKind(kind) {
    return this.kinds[kind] || this.kinds.UNKNOWN;
  }

  byName(name) {
    return name ? this.names[hashOf(name) % this.names.length] : this.unnamed;
  }

  of(allocation, by) {
    if (by === 'role') return this.roles[roleOf(allocation)];
    return by === 'name' ? this.byName(allocation.name) : this.byKind(allocation.kind);
  }

  // For chunks that do not match a search. An opaque mix, because a translucent fill would show the hatching of free
  // memory.
  faded(colour) {
    let faded = this.fadeds.get(colour);
    if (!faded) {
      faded = shaded(colour, [this.free, FADED]);
      this.fadeds.set(colour, faded);
    }
    return faded;
  }

  inkFor(colour) {
    let ink = this.inks.get(colour);
    if (!ink) {
      ink = inkOn(colour);
      this.inks.set(colour, ink);
    }
    return ink;
  }
}
