export { warmup } from '../optim/schedule.js';
