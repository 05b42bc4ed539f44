import type { RowReport } from "./report.ts";
import type { RoundResult } from "./scenario.ts";

interface Bar {
  readonly label: string;
  readonly ratio: number;
  readonly text: string;
  readonly limit: number | undefined;
}

const labelWidth = 430;
const barWidth = 300;
const barHeight = 16;
const gap = 6;
const top = 56;
/** The ratio at the end of the scale; longer bars are cut. */
const scale = 2;

/**
 * A bar chart of the ratios of our CPU, memory and (where it has a limit) time to the second implementation's, with a line at 1. Rows
 * without a second value are left out.
 */
export function svgOf(title: string, reports: readonly RowReport[]): string {
  const bars = reports.flatMap(barsOf);
  const height = top + bars.length * (barHeight + gap) + 12;
  const width = labelWidth + barWidth + 170;
  const at = (ratio: number): number => labelWidth + (Math.min(ratio, scale) / scale) * barWidth;
  const lines = bars.map(({ label, ratio, text, limit }, index) => {
    const y = top + index * (barHeight + gap);
    const fill = limit !== undefined && ratio > limit ? "#c98a2b" : "#3b7dc4";
    const mark =
      limit === undefined
        ? ""
        : `<line x1="${at(limit)}" y1="${y - 2}" x2="${at(limit)}" y2="${y + barHeight + 2}" stroke="#2e7d32" stroke-width="2"/>`;
    return (
      `<text x="${labelWidth - 8}" y="${y + 12}" text-anchor="end">${escaped(label)}</text>` +
      `<rect x="${labelWidth}" y="${y}" width="${(at(ratio) - labelWidth).toFixed(1)}" height="${barHeight}" fill="${fill}"/>${mark}` +
      `<text x="${(at(ratio) + 6).toFixed(1)}" y="${y + 12}">${escaped(text)}</text>`
    );
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="12" y="22" font-size="15" font-weight="bold">${escaped(title)}: ours to Kubernetes' own, same run</text>`,
    `<text x="12" y="42" fill="#555">shorter is better; grey: equal; green: the limit that is aimed at</text>`,
    `<line x1="${at(1)}" y1="${top - 8}" x2="${at(1)}" y2="${height - 8}" stroke="#999"/>`,
    ...lines,
    "</svg>\n",
  ].join("\n");
}

const figures: readonly {
  title: string;
  limit: "seconds" | "cpu" | "memory";
  digits: number;
  of(result: RoundResult): number;
  unit: string;
}[] = [
  { title: "time", limit: "seconds", digits: 2, of: ({ seconds }) => seconds, unit: "s" },
  { title: "CPU", limit: "cpu", digits: 2, of: ({ cpuSeconds }) => cpuSeconds, unit: "s" },
  { title: "memory", limit: "memory", digits: 0, of: ({ residentMb }) => residentMb, unit: "MB" },
];

function barsOf({ name, limits, ours, peer }: RowReport): Bar[] {
  if (peer === undefined) return [];
  // Rows of fixed duration have no time limit.
  const shown = figures.filter(({ limit }) => limit !== "seconds" || limits.seconds !== undefined);
  return shown.map(({ title, limit, digits, of, unit }) => {
    const ratio = of(ours) / of(peer);
    const text = `${ratio.toFixed(2)} (${of(ours).toFixed(digits)} to ${of(peer).toFixed(digits)} ${unit})`;
    return { label: `${name}: ${title}`, ratio, text, limit: limits[limit] };
  });
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
