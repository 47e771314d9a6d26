// How a cell looks: a colour and a shape for each state, so that colour alone never tells. The shapes still
// differ at 5 pixels.

/** The custom property of the stylesheet that holds the colour of a state. */
export const colourOf = (state) => `--state-${state <= 8 ? state : 0}`;

const SHAPES = {
  0: outline, // no pod wanted: an empty frame
  1: small, // old: a smaller square
  2: slit, // held: a minus in the middle
  3: lower, // taken: the upper half is gone
  4: upper, // starting: a frame that fills
  5: full, // updated
  6: notch, // waiting: a hole in the middle
  7: cross, // set aside
  8: diagonal, // unreachable
};

/** Draw one cell into a context: `size` is in its pixels. */
export function drawCell(context, state, x, y, size, colour) {
  context.fillStyle = colour;
  context.strokeStyle = colour;
  (SHAPES[state] ?? outline)(context, x, y, size);
}

function full(context, x, y, size) {
  rounded(context, x, y, size, size);
  context.fill();
}

function small(context, x, y, size) {
  const edge = Math.max(1, Math.round(size * 0.2));
  full(context, x + edge, y + edge, size - 2 * edge);
}

function outline(context, x, y, size) {
  const line = Math.max(1, Math.round(size / 12));
  context.lineWidth = line;
  rounded(context, x + line / 2, y + line / 2, size - line, size - line);
  context.stroke();
}

function slit(context, x, y, size) {
  full(context, x, y, size);
  const [width, height] = [Math.round(size * 0.56), Math.max(1, Math.round(size * 0.16))];
  context.clearRect(x + Math.round((size - width) / 2), y + Math.round((size - height) / 2), width, height);
}

function lower(context, x, y, size) {
  const half = Math.round(size / 2);
  outline(context, x, y, size);
  context.fillRect(x, y + half, size, size - half);
}

function upper(context, x, y, size) {
  const edge = Math.max(1, Math.round(size * 0.28));
  outline(context, x, y, size);
  context.fillRect(x + edge, y + edge, size - 2 * edge, size - 2 * edge);
}

function notch(context, x, y, size) {
  full(context, x, y, size);
  const hole = Math.max(2, Math.round(size * 0.34));
  const edge = Math.round((size - hole) / 2);
  context.clearRect(x + edge, y + edge, hole, hole);
}

function cross(context, x, y, size) {
  context.lineWidth = Math.max(1.5, size / 5);
  context.beginPath();
  const edge = context.lineWidth / 2;
  context.moveTo(x + edge, y + edge);
  context.lineTo(x + size - edge, y + size - edge);
  context.moveTo(x + size - edge, y + edge);
  context.lineTo(x + edge, y + size - edge);
  context.stroke();
}

function diagonal(context, x, y, size) {
  outline(context, x, y, size);
  context.beginPath();
  context.moveTo(x, y + size);
  context.lineTo(x + size, y);
  context.lineTo(x + size, y + size);
  context.closePath();
  context.fill();
}

function rounded(context, x, y, width, height) {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(3, width / 5));
}

/** Return a small canvas with one cell, for legends. */
export function swatch(state, pixels = 14) {
  const canvas = document.createElement('canvas');
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.height = Math.round(pixels * ratio);
  canvas.className = 'swatch';
  canvas.setAttribute('aria-hidden', 'true');
  canvas.dataset.state = state;
  repaintSwatch(canvas);
  return canvas;
}

/** Draw a swatch again, after the colours have changed. */
export function repaintSwatch(canvas) {
  const colour = getComputedStyle(document.documentElement).getPropertyValue(colourOf(Number(canvas.dataset.state)));
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, canvas.width, canvas.height);
  drawCell(context, Number(canvas.dataset.state), 0, 0, canvas.width, colour);
}

/** Sprites of every state at one size, bright and dim; drawing a cell is then one copy. */
export class Sprites {
  constructor(size, ratio) {
    this.pixels = Math.max(1, Math.round(size * ratio));
    const styles = getComputedStyle(document.documentElement);
    this.canvas = document.createElement('canvas');
    this.canvas.width = this.pixels * 9;
    this.canvas.height = this.pixels * 2;
    const context = this.canvas.getContext('2d');
    for (let state = 0; state < 9; state += 1) {
      for (const row of [0, 1]) {
        context.globalAlpha = row ? 0.16 : 1;
        drawCell(context, state, state * this.pixels, row * this.pixels, this.pixels, styles.getPropertyValue(colourOf(state)));
      }
    }
  }

  draw(context, state, x, y, dim) {
    const { pixels } = this;
    context.drawImage(this.canvas, (state <= 8 ? state : 0) * pixels, dim ? pixels : 0, pixels, pixels, x, y, pixels, pixels);
  }
}
