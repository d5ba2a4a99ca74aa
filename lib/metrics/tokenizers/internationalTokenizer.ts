/**
 * The tokenizer `intl`, equal to mteval-v14: punctuation and symbols of all scripts are words of their own,
 * except punctuation between digits.
 */
export function tokenizeInternational(line: string): string {
  return line
    .replace(/(\P{N})(\p{P})/gu, '$1 $2 ')
    .replace(/(\p{P})(\P{N})/gu, ' $1 $2')
    .replace(/(\p{S})/gu, ' $1 ');
}
