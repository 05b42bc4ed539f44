/** Prometheus text format for metrics that are computed per scrape. */
export class MetricText {
  #lines: string[] = [];

  /** Begins a family: its samples must follow before the next one. */
  family(name: string, type: "counter" | "gauge", help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  /** Adds a sample of the current family. @param time ms since the epoch, in decimal */
  sample(name: string, labels: Readonly<Record<string, string>>, value: number, time?: string): void {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}=${JSON.stringify(text)}`);
    this.#lines.push(
      `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}${time === undefined ? "" : ` ${time}`}`,
    );
  }

  /** The page in the Prometheus text format. */
  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }
}
