/** Prometheus text format for metrics that are computed per scrape. */
export class MetricText {
  #lines: string[] = [];

  /** Begins a family: its samples must follow before the next one. */
  family(name: string, type: "counter" | "gauge", help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  /**
   * Adds a sample of the current family.
   * @param labels or their text, for labels of many samples
   * @param time ms since the epoch, in decimal
   */
  sample(name: string, labels: Readonly<Record<string, string>> | string, value: number, time?: string): void {
    const pairs = typeof labels === "string" ? labels : labelText(labels);
    this.#lines.push(`${name}${pairs === "" ? "" : `{${pairs}}`} ${value}${time === undefined ? "" : ` ${time}`}`);
  }

  /** The page in the Prometheus text format. */
  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }
}

/** `name="value"`, separated by commas. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, text]) => `${key}=${JSON.stringify(text)}`)
    .join(",");
}
