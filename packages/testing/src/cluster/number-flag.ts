/** Parses the value of `--name`: a whole number from 0 to `most`. @throws Error that names the flag */
export function wholeNumber(name: string, text: string, most: number): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= most) return Number(text);
  throw new Error(`--${name} must be a whole number from 0 to ${most}, got ${JSON.stringify(text)}`);
}
