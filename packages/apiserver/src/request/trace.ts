import { AsyncLocalStorage } from "node:async_hooks";

/** The trace context of a span. Ids are lower-case hexadecimal. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the spans are exported. */
  readonly sampled: boolean;
}

/** The span of the running code; set only when tracing is enabled. */
export const currentSpan = new AsyncLocalStorage<SpanContext>();

/** The traceparent header of an outgoing request. Source: https://www.w3.org/TR/trace-context/ */
export function traceparent(): string | undefined {
  const span = currentSpan.getStore();
  return span && formatTraceparent(span);
}

/** `00-<trace id>-<span id>-<flags>`. Source: https://www.w3.org/TR/trace-context/ */
export function formatTraceparent({ traceId, spanId, sampled }: SpanContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** @returns undefined for an invalid header */
export function parseTraceparent(text: unknown): SpanContext | undefined {
  if (typeof text !== "string") return undefined;
  const [, version, traceId = "", spanId = "", flags = ""] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/.exec(text) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && text.length !== 55)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
