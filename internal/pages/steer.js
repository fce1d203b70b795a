// Dialogs that change something.
import { h, set, kbd } from './ui.js';
import { post } from './api.js';
import { act, toast } from './parts.js';

// ask opens a dialog with fields, and runs send with their values. It stays open, with the
// reason, when the host refuses. The button is only live when every field is valid.
export function ask({ title, text, fields = [], button, danger, send, done }) {
  const err = h('p', { class: 'fail', role: 'alert' }), go = h('button', { class: 'btn ' + (danger ? 'danger' : 'good'), type: 'submit' }, button);
  const inputs = fields.map(f => h(f.options ? 'select' : 'input', { id: 'f-' + f.name, name: f.name, type: f.options ? null : f.type || 'text', min: f.min, max: f.max, step: f.step, value: f.value ?? '', required: f.required, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': f.hint ? 'h-' + f.name : null }, (f.options || []).map(([v, n]) => h('option', { value: v }, n))));
  const values = () => Object.fromEntries(inputs.map(i => [i.name, i.value.trim()]));
  const check = () => { go.disabled = !inputs.every(i => i.checkValidity()) || !fields.every(f => !f.valid || f.valid(values()[f.name])); };
  const d = h('dialog', { class: 'ask', 'aria-labelledby': 'ask-t' }, h('form', { method: 'dialog', on: {
    input: check,
    submit: async e => {
      e.preventDefault();
      check();
      if (go.disabled) return;
      go.disabled = true;
      set(err);
      try { await send(values()); d.close(); done?.(values()); } catch (x) { set(err, x.message); go.disabled = false; }
    },
  } }, h('h2', { id: 'ask-t' }, title), text ? h('p', { class: 'dim' }, text) : null,
  fields.map((f, i) => h('div', { class: 'field' }, h('label', { for: 'f-' + f.name }, f.label), inputs[i], f.hint ? h('p', { class: 'dim', id: 'h-' + f.name }, f.hint) : null)),
  err, h('div', { class: 'abtns' }, go, h('button', { class: 'btn', type: 'button', on: { click: () => d.close() } }, 'Leave it', kbd('Esc')))));
  d.addEventListener('close', () => d.remove());
  document.body.append(d);
  check();
  d.showModal();
  inputs[0]?.select?.();
}
// asker is a button that opens a dialog; read-only and lost say so before it opens.
export const asker = (label, key, form, cls) => act(label, key, () => ask(form()), cls);

// retune is the form of that dialog.
export const retune = (what, path, limit, adapts) => ({
  title: 'Retune ' + what, text: 'How many attempts may run at the same time. What runs goes on.', button: 'Set the limit',
  fields: [{ name: 'limit', label: 'Limit', type: 'number', min: adapts ? -1 : 0, max: 100000, step: 1, required: true, value: limit, hint: adapts ? '0 starts nothing more; −1 adapts to what the provider takes.' : '0 starts nothing more.' }],
  send: v => post(path, { limit: +v.limit }), done: v => toast('Asked for ' + v.limit + '.'),
});
