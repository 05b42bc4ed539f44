import { AsyncLocalStorage } from "node:async_hooks";

/** Where one piece of work stands in a trace. Ids are lower-case hexadecimal. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether its spans are kept. */
  readonly sampled: boolean;
}

/** What the code that runs now works for; only a server that traces sets it. */
export const currentSpan = new AsyncLocalStorage<SpanContext>();

/** The header by which the next server knows. Source: https://www.w3.org/TR/trace-context/ */
export function traceparent(): string | undefined {
  const span = currentSpan.getStore();
  return span && formatTraceparent(span);
}

export function formatTraceparent({ traceId, spanId, sampled }: SpanContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** @returns undefined for what is no such header */
export function parseTraceparent(text: unknown): SpanContext | undefined {
  if (typeof text !== "string") return undefined;
  const [, version, traceId = "", spanId = "", flags = ""] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/.exec(text) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && text.length !== 55)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
