// What has changed the limit of a job or an account: the list, and the numbers on the line.
import { h, time } from './ui.js';

const changeRole = c => /by hand/.test(c.why) ? 'work' : c.to < c.from ? 'bad' : 'over';
// changes is the list of why a limit changed; its numbers are those on the line.
export const changes = (list, most) => h('ol', { class: 'whys' }, list.map((c, i) => [c, i + 1]).slice(-most).reverse().map(([c, i]) => h('li', {}, h('span', { class: 'pinn r-' + changeRole(c) }, i), time(c.at), h('b', { class: 'n' }, c.from + ' → ' + c.to), h('span', {}, c.why))));
export const pins = (list, from) => list.map((c, i) => ({ at: Date.parse(c.at), from: c.from, to: c.to, why: c.why, n: i + 1, role: changeRole(c) })).filter(m => m.at > from);
