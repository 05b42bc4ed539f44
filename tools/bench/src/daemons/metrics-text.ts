/** The sum of all samples of a metric in Prometheus' text format; 0 when there is none. */
export function sumOfSamples(text: string, name: string): number {
  let sum = 0;
  for (const line of text.split("\n")) {
    if (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) sum += Number(line.slice(line.lastIndexOf(" ") + 1));
  }
  return sum;
}
