import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { type DaemonBenchOptions, machineLine } from "./options.ts";
import { type RowReport, reportHeader, reportLines } from "./report.ts";
import { svgOf } from "./svg.ts";

/**
 * Prints rows as text while they come, or all of them as JSON at the end, and writes the picture. A benchmark that is ended by SIGTERM leaves the
 * rows that it has.
 */
export class ReportPrinter {
  readonly #options: DaemonBenchOptions;
  readonly #machine = machineLine(loadavg()[0] ?? 0);
  readonly #reports: RowReport[] = [];
  readonly #notes: string[] = [];
  readonly #measured: () => readonly RowReport[];

  /** @param measured rows that are not printed one by one, since each round goes through all of them; asked for at the end */
  constructor(options: DaemonBenchOptions, measured: () => readonly RowReport[] = () => []) {
    this.#options = options;
    this.#measured = measured;
    this.#say(this.#machine);
    this.#say(reportHeader());
    process.prependListener("SIGTERM", this.#interrupted);
  }

  /** Prints the rows so far; a cluster that has to be removed first has a separate listener, which ends the process. */
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
    if (svgFile !== undefined) writeFileSync(svgFile, svgOf(title, this.#reports));
    return this.#reports;
  }
}
