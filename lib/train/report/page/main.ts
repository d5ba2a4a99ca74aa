/** The page of `report.html`. */
import type { ReportData } from '../reportData.js';
import { swatch } from './chart.js';
import { Charts } from './charts.js';
import { byId, make, visible } from './dom.js';
import { factsOf, runRows } from './facts.js';
import { samplesOf } from './samples.js';

const { made, runs } = JSON.parse(byId('data').textContent) as ReportData;
const isSeveral = runs.length > 1;

const time = make('time', { dateTime: made }, new Date(made).toLocaleString());
byId('made').append('Written ', time, ' by torchformer.');

const charts = new Charts(runs);
const rows = runRows(runs, ({ name }, index) => {
  const shownName = make('span', { dir: 'auto' }, visible(name));
  if (!isSeveral) return shownName;
  const box = make('input', { type: 'checkbox', checked: true });
  box.addEventListener('change', () => charts.setShown(index, box.checked));
  return make('label', { className: 'run-name' }, box, swatch(index), shownName);
});
byId('runs').append(...rows);

const samples = samplesOf(runs);
if (samples !== null) {
  byId('samples').append(samples);
  byId('samples-section').hidden = false;
}
byId('facts').append(...runs.map((run) => factsOf(run, isSeveral)));
