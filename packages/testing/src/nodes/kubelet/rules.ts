import type { Readable } from "node:stream";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Arguments of a log function. */
export interface LogRequest {
  readonly pod: Pod;
  readonly container: string;
  /** The log of the container's life before this one. */
  readonly previous: boolean;
  readonly follow: boolean;
  /** Aborted when the client stops reading. */
  readonly signal: AbortSignal;
}

/** Lines, or a text of several; what is iterated asynchronously is sent as it comes. */
export type LogLines = string | readonly string[] | AsyncIterable<string>;
export type Logs = string | readonly string[] | ((request: LogRequest) => LogLines | Promise<LogLines>);

/** Arguments of an exec function. */
export interface ExecRequest {
  readonly pod: Pod;
  readonly container: string;
  readonly command: readonly string[];
  readonly tty: boolean;
  /** Ends when the client closes it, or sends nothing. */
  readonly stdin: Readable;
  /** @returns resolves when more may be written */
  stdout(chunk: string | Uint8Array): Promise<void>;
  stderr(chunk: string | Uint8Array): Promise<void>;
  /** Called when the client's terminal has another size. */
  onResize(listener: (size: { readonly width: number; readonly height: number }) => void): void;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

/** A text is stdout, a number the exit code. Default: exit code 0. */
export type ExecResult = string | number | { readonly stdout?: string; readonly stderr?: string; readonly exitCode?: number };
/** What it throws, the client gets as the runtime's error. */
export type Exec = (request: ExecRequest) => ExecResult | undefined | Promise<ExecResult | undefined>;
