import { Server, ServerCredentials } from "@grpc/grpc-js";
import protobuf from "protobufjs";

/** Fields of an OTLP span used by tests; IDs in hexadecimal. */
interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly tookMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** Trace IDs. */
  readonly links: readonly string[];
  /** Status code; 2 is an error. */
  readonly status: number;
}

interface TraceCollector {
  readonly endpoint: string;
  readonly spans: readonly CollectedSpan[];
  /** Resource attributes of the sender. */
  readonly service: Readonly<Record<string, string | number>>;
  stop(): void;
}

/** Copied schema, for independence from the exporter under test. Source: opentelemetry-proto */
const definition = `
syntax = "proto3";
message Request { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
message Scope { string name = 1; string version = 2; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
  repeated Link links = 13; Status status = 15;
}
message Link { bytes trace_id = 1; bytes span_id = 2; }
message Status { string message = 2; int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; } }
`;

/** A trace collector for tests: OTLP over gRPC on a free port. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const type = protobuf.parse(definition).root.lookupType("Request");
  const spans: CollectedSpan[] = [];
  const service: Record<string, string | number> = {};
  const server = new Server();
  const same = (bytes: Buffer): Buffer => bytes;
  const path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
  const bytes = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  server.addService(
    { Export: { path, requestStream: false, responseStream: false, ...bytes } },
    {
      Export({ request }: { request: Buffer }, answer: (err: null, value: Buffer) => void) {
        const options = { longs: String, defaults: true, arrays: true } as const;
        for (const sent of type.toObject(type.decode(request), options)["resourceSpans"]) {
          Object.assign(service, plain(sent.resource.attributes));
          for (const scope of sent.scopeSpans) spans.push(...scope.spans.map(asCollected));
        }
        answer(null, Buffer.alloc(0));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (err, bound) => (err ? reject(err) : resolve(bound)));
  });
  return { endpoint: `127.0.0.1:${port}`, spans, service, stop: () => server.forceShutdown() };
}

interface KeyValue {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}

function plain(attributes: readonly KeyValue[]): Record<string, string | number> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));
}

// biome-ignore lint/suspicious/noExplicitAny: what protobufjs decodes has no type.
function asCollected(span: any): CollectedSpan {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
  const tookNanos = BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano);
  return {
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId),
    name: span.name,
    kind: span.kind,
    tookMs: Number(tookNanos) / 1e6,
    attributes: plain(span.attributes),
    links: span.links.map((link: { traceId: Uint8Array }) => hex(link.traceId)),
    status: span.status?.code ?? 0,
  };
}
