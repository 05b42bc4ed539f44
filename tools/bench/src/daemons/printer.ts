import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { dirname } from "node:path";
import { type DaemonBenchOptions, machineLine } from "./options.ts";
import { type RowReport, reportHeader, reportLines } from "./report.ts";
import { svgOf } from "./svg.ts";

/**
 * Prints each row as text when it is complete, or all rows as JSON at the end, and writes the chart. A benchmark that is stopped by
 * SIGTERM still prints the rows measured so far.
 */
export class ReportPrinter {
  readonly #options: DaemonBenchOptions;
  readonly #machine = machineLine(loadavg()[0] ?? 0);
  readonly #reports: RowReport[] = [];
  readonly #notes: string[] = [];
  readonly #measured: () => readonly RowReport[];

  /** @param measured rows that are complete only at the end, because each round goes through all of them; called at the end */
  constructor(options: DaemonBenchOptions, measured: () => readonly RowReport[] = () => []) {
    this.#options = options;
    this.#measured = measured;
    this.#say(this.#machine);
    this.#say(reportHeader());
    process.prependListener("SIGTERM", this.#interrupted);
  }

  /** Prints the rows so far; a cluster that has to be removed first has a separate listener, which exits the process. */
  readonly #interrupted = (): void => {
    this.end("not complete");
    if (process.listenerCount("SIGTERM") === 0) process.exit(143);
  };

  #say(line: string): void {
    if (!this.#options.isJson) console.log(line);
  }

  note(text: string): void {
    this.#notes.push(text);
    this.#say(text);
  }

  row(report: RowReport): void {
    this.#reports.push(report);
    for (const line of reportLines(report)) this.#say(line);
  }

  get reports(): readonly RowReport[] {
    return this.#reports;
  }

  end(title: string): readonly RowReport[] {
    process.off("SIGTERM", this.#interrupted);
    for (const report of this.#measured()) this.row(report);
    const { isJson, svgFile } = this.#options;
    const all = { machine: this.#machine, notes: this.#notes, reports: this.#reports };
    if (isJson) console.log(JSON.stringify(all, undefined, 2));
    if (svgFile === undefined) return this.#reports;
    mkdirSync(dirname(svgFile), { recursive: true });
    writeFileSync(svgFile, svgOf(title, this.#reports));
    return this.#reports;
  }
}
