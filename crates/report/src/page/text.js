// Text: human-readable numbers, and elements in which data is always text.

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

// "49,152,000". Not `toLocaleString`, which depends on the locale and is too slow for a table of 100,000 rows.
function exact(number) {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

// "46.9 MiB": three digits, enough to compare.
function bytes(number) {
  if (number < 1024) return `${number} B`;
  let value = number;
  let unit = -1;
  // 1023.5 would be shown as "1024".
  while (value >= 1023.5 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits).replace(/\.0+$/, '')} ${UNITS[unit]}`;
}

function signedBytes(number) {
  if (number === 0) return '±0';
  return `${number > 0 ? '+' : '−'}${bytes(Math.abs(number))}`;
}

// A share of nothing is not a number, and is shown as none.
function percent(fraction) {
  const value = (fraction || 0) * 100;
  if (value > 0 && value < 0.1) return '< 0.1 %';
  // Shows "100 %" only for everything.
  return `${value > 99.9 && value < 100 ? '99.9' : value.toFixed(value >= 99.95 || value === 0 ? 0 : 1)} %`;
}

function count(number, one, many = `${one}s`) {
  return `${exact(number)} ${number === 1 ? one : many}`;
}

const ESCAPES = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

// A name with invisible characters and direction changes shown as escapes.
function printable(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => ESCAPES[c] || `\\u{${c.codePointAt(0).toString(16)}}`);
}

// The only way in which this page creates elements. Other values become text, never markup.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') element.className = value;
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// A name from the data. It has its own direction, so that a right-to-left name does not affect the row.
function given(text, className) {
  return make('bdi', { class: className || null }, printable(text));
}

function byId(id) {
  return document.getElementById(id);
}
