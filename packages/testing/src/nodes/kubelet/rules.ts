import type { Readable } from "node:stream";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Arguments of a log function. */
export interface LogRequest {
  readonly pod: Pod;
  readonly container: string;
  /** True for the log of the previous container instance. */
  readonly previous: boolean;
  readonly follow: boolean;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Lines, or a text of several lines; chunks of an async iterable are sent as they arrive. */
export type LogLines = string | readonly string[] | AsyncIterable<string>;
export type Logs = string | readonly string[] | ((request: LogRequest) => LogLines | Promise<LogLines>);

/** Arguments of an exec function. */
export interface ExecRequest {
  readonly pod: Pod;
  readonly container: string;
  readonly command: readonly string[];
  readonly tty: boolean;
  /** Ends when the client closes it; empty when the client sends none. */
  readonly stdin: Readable;
  /** @returns resolves when more may be written (backpressure) */
  stdout(chunk: string | Uint8Array): Promise<void>;
  stderr(chunk: string | Uint8Array): Promise<void>;
  /** Called when the size of the client's terminal changes. */
  onResize(listener: (size: { readonly width: number; readonly height: number }) => void): void;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** A string is stdout, a number the exit code. Default: exit code 0. */
export type ExecResult = string | number | { readonly stdout?: string; readonly stderr?: string; readonly exitCode?: number };
/** The client receives a thrown error as an error of the runtime. */
export type Exec = (request: ExecRequest) => ExecResult | undefined | Promise<ExecResult | undefined>;
