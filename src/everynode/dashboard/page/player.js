// The player of a recording: a button, a slider and the time. Space plays and pauses, the slider has the arrow keys.

import { el, setText } from './dom.js';
import { timecode } from './format.js';

/** Return the element of the player; `onSeek` is called when the viewer has moved to a time. */
export function player(recording, onSeek) {
  const button = el('button', { type: 'button', class: 'play' }, 'Play');
  const slider = el('input', { type: 'range', min: 0, max: recording.end, step: Math.max(recording.end / 1000, 0.1), 'aria-label': 'Time in the rollout' });
  const time = el('output', { class: 'time' });
  const show = () => {
    slider.value = recording.at;
    slider.setAttribute('aria-valuetext', `${timecode(recording.at)} of ${timecode(recording.end)}`);
    setText(time, `${timecode(recording.at)} / ${timecode(recording.end)}`);
    setText(button, recording.playing ? 'Pause' : 'Play');
  };
  const toggle = () => {
    recording.toggle();
    show();
    if (!recording.playing) onSeek(recording.at);
  };
  recording.onTime = show;
  button.addEventListener('click', toggle);
  slider.addEventListener('input', () => recording.seek(Number(slider.value)));
  slider.addEventListener('change', () => onSeek(recording.at));
  document.addEventListener('keydown', (event) => {
    if (event.key !== ' ' || event.target !== document.body) return;
    event.preventDefault();
    toggle();
  });
  show();
  return el('div', { class: 'player', role: 'group', 'aria-label': 'Player' }, button, slider, time);
}
