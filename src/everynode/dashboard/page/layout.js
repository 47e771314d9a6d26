// Where each cell of the grid stands. Pure: numbers in, numbers out.

const PITCHES = [28, 24, 20, 17, 14, 12, 10, 9, 8]; // from cell to cell, in CSS pixels
const TITLE = 26; // height of a group's title
const GAP = 18; // between two groups
const NARROWEST = 200; // of a column of groups

/** The layout of groups in a width: the largest cells with which all fit into `height`, else the smallest. */
export function arrange(groups, width, height) {
  let found = null;
  for (const pitch of PITCHES) {
    found = arrangeAt(groups, width, pitch);
    if (found.height <= height) break;
  }
  return found;
}

function arrangeAt(groups, width, pitch) {
  const most = Math.max(1, Math.min(groups.length, Math.floor((width + GAP) / (NARROWEST + GAP))));
  let best = null;
  for (let columns = 1; columns <= most; columns += 1) {
    const made = inColumns(groups, width, pitch, columns);
    if (!best || made.height < best.height) best = made;
  }
  return best;
}

function inColumns(groups, width, pitch, columns) {
  const titled = groups.length > 1 || groups.some((group) => group.title);
  const room = (width - GAP * (columns - 1)) / columns;
  const across = Math.max(1, Math.floor(room / pitch));
  const blocks = [];
  let top = 0;
  for (let first = 0; first < groups.length; first += columns) {
    let tallest = 0;
    groups.slice(first, first + columns).forEach((group, column) => {
      const rows = Math.ceil(group.indexes.length / across);
      const cells = top + (titled ? TITLE : 0);
      blocks.push({ group, left: Math.round(column * (room + GAP)), top, cells, rows, across, room });
      tallest = Math.max(tallest, (titled ? TITLE : 0) + rows * pitch);
    });
    top += tallest + GAP;
  }
  return { pitch, size: pitch - (pitch > 12 ? 3 : 2), blocks, height: Math.max(0, top - GAP), titled };
}

/** Where a node stands: its block, the place in it, and the pixel. */
export function placesOf(layout, count) {
  const block = new Int32Array(count).fill(-1);
  const place = new Int32Array(count);
  layout.blocks.forEach((each, number) => each.group.indexes.forEach((index, at) => {
    block[index] = number;
    place[index] = at;
  }));
  return { block, place };
}

/** The pixel of the place in a block. */
export function pixelOf(layout, block, place) {
  return [block.left + (place % block.across) * layout.pitch, block.cells + Math.floor(place / block.across) * layout.pitch];
}

/** The node at a pixel; -1 if there is none. */
export function nodeAt(layout, x, y) {
  for (const block of layout.blocks) {
    const column = Math.floor((x - block.left) / layout.pitch);
    const row = Math.floor((y - block.cells) / layout.pitch);
    if (column < 0 || column >= block.across || row < 0 || row >= block.rows) continue;
    const place = row * block.across + column;
    if (place < block.group.indexes.length) return block.group.indexes[place];
  }
  return -1;
}

/** The node one step from another: `across` and `down` are -1, 0 or 1. -1 if the grid ends there. */
export function neighbour(layout, places, index, across, down) {
  const number = places.block[index];
  const { blocks } = layout;
  let block = blocks[number];
  if (!block) return -1;
  const place = places.place[index] + across + down * block.across;
  if (place >= 0 && place < block.group.indexes.length) return block.group.indexes[place];
  const column = places.place[index] % block.across;
  block = blocks[number + (across || down)];
  if (!block) return down && place >= 0 && blocks[number].rows * blocks[number].across > place ? blocks[number].group.indexes.at(-1) : -1;
  const size = block.group.indexes.length;
  if (across > 0) return block.group.indexes[0];
  if (across < 0) return block.group.indexes[size - 1];
  const lastRow = Math.floor((size - 1) / block.across) * block.across;
  return block.group.indexes[Math.min(size - 1, (down > 0 ? 0 : lastRow) + Math.min(column, block.across - 1))];
}
