// Replaces a folder with two files of one text, without end, as on a system that cannot swap
// folders in one step.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const [, , moduleUrl, folder] = process.argv;
const { replaceFolder } = await import(moduleUrl);
for (let round = 0; ; round++) {
  const fill = async (temporary) => {
    for (const name of ['a', 'b']) await writeFile(join(temporary, name), String(round));
  };
  await replaceFolder(folder, ['a', 'b'], fill, () => 'ENOSYS');
  if (round === 0) process.stdout.write('saved\n');
}
