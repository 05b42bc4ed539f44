/** Prometheus text format for metrics that are computed per scrape. */
export class MetricText {
  #lines: string[] = [];

  family(name: string, type: "counter" | "gauge", help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  sample(name: string, labels: Readonly<Record<string, string>>, value: number, time?: string): void {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}=${JSON.stringify(text)}`);
    this.#lines.push(
      `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}${time === undefined ? "" : ` ${time}`}`,
    );
  }

  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }
}
