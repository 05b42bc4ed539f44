/** Encodes spans in OTLP. Source: opentelemetry-proto trace/v1/trace.proto, collector/trace/v1/trace_service.proto */
import protobuf from "protobufjs/minimal.js";

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string | undefined;
  /** The span of another trace that caused this one. */
  readonly link?: { readonly traceId: string; readonly spanId: string } | undefined;
  readonly name: string;
  readonly kind: "server" | "client";
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly failed: boolean;
}

const kinds = { server: 2, client: 3 };
const failedCode = 2;

/** An ExportTraceServiceRequest. @param service resource attributes of this process */
export function encodeSpans(spans: readonly Span[], service: Readonly<Record<string, string>>): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(tag(1, 2)).fork(); // resource_spans
  writer.uint32(tag(1, 2)).fork(); // resource
  writeAttributes(writer, 1, service);
  writer.ldelim();
  writer.uint32(tag(2, 2)).fork(); // scope_spans
  writer.uint32(tag(1, 2)).fork().uint32(tag(1, 2)).string("coxswain").ldelim();
  for (const span of spans) writeSpan(writer.uint32(tag(2, 2)).fork(), span).ldelim();
  return writer.ldelim().ldelim().finish();
}

const tag = (field: number, wireType: 0 | 1 | 2): number => (field << 3) | wireType;
const bytesOf = (hex: string): Uint8Array => Buffer.from(hex, "hex");

function writeSpan(writer: protobuf.Writer, span: Span): protobuf.Writer {
  writer.uint32(tag(1, 2)).bytes(bytesOf(span.traceId)).uint32(tag(2, 2)).bytes(bytesOf(span.spanId));
  if (span.parentId !== undefined) writer.uint32(tag(4, 2)).bytes(bytesOf(span.parentId));
  writer.uint32(tag(5, 2)).string(span.name).uint32(tag(6, 0)).int32(kinds[span.kind]);
  writeTime(writer, 7, span.start);
  writeTime(writer, 8, span.end);
  writeAttributes(writer, 9, span.attributes);
  if (span.link !== undefined) {
    const { traceId, spanId } = span.link;
    writer.uint32(tag(13, 2)).fork();
    writer.uint32(tag(1, 2)).bytes(bytesOf(traceId)).uint32(tag(2, 2)).bytes(bytesOf(spanId)).ldelim();
  }
  if (span.failed) writer.uint32(tag(15, 2)).fork().uint32(tag(3, 0)).int32(failedCode).ldelim();
  return writer;
}

/** Nanoseconds since the epoch as fixed64, lower half first. */
function writeTime(writer: protobuf.Writer, field: number, ms: number): void {
  const nanos = BigInt(Math.round(ms * 1000)) * 1000n;
  writer
    .uint32(tag(field, 1))
    .fixed32(Number(nanos & 0xffff_ffffn))
    .fixed32(Number(nanos >> 32n));
}

function writeAttributes(writer: protobuf.Writer, field: number, attributes: Readonly<Record<string, string | number>>): void {
  for (const [key, value] of Object.entries(attributes)) {
    writer.uint32(tag(field, 2)).fork().uint32(tag(1, 2)).string(key).uint32(tag(2, 2)).fork();
    if (typeof value === "string") writer.uint32(tag(1, 2)).string(value);
    else writer.uint32(tag(3, 0)).int64(value);
    writer.ldelim().ldelim();
  }
}
