import type { Clock, Timer } from "../clock/clock.ts";
import type { LineWriter } from "./log-files.ts";

interface SplitStreamOptions {
  readonly toStdout: (text: string) => void;
  readonly toStderr: (text: string) => void;
  /** Upper bound of buffered output; 0: unbuffered. */
  readonly bufferBytes: number;
  /** Upper bound of the time in the buffer. */
  readonly flushMs: number;
  readonly clock: Clock;
}

/**
 * --log-json-split-stream: errors go to stderr immediately, everything else to stdout, optionally buffered.
 * Source: k8s.io/component-base logs/json
 */
export function newSplitWriter(options: SplitStreamOptions): LineWriter & { flush(): void } {
  const { toStdout, toStderr, bufferBytes, flushMs, clock } = options;
  let waiting = "";
  let timer: Timer | undefined;
  const flush = (): void => {
    timer?.cancel();
    timer = undefined;
    if (waiting !== "") toStdout(waiting);
    waiting = "";
  };
  const write: LineWriter = (line, severity) => {
    if (severity === "E" || severity === "F") return toStderr(line);
    waiting += line;
    if (waiting.length > bufferBytes) flush();
    else timer ??= clock.after(flushMs, flush);
  };
  return Object.assign(write, { flush });
}
