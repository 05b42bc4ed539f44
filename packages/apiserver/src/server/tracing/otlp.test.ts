import assert from "node:assert/strict";
import { test } from "node:test";
import protobuf from "protobufjs";
import { encodeSpans, type Span } from "./otlp.ts";

/** The published field numbers of opentelemetry-proto. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
  message Scope { string name = 1; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
    repeated Link links = 13; Status status = 15;
  }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; int64 int_value = 3; } }
`);

const ids = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const spans: Span[] = [
  {
    ...{ ...ids, name: "KubernetesAPI", kind: "server", start: 1_700_000_000_000.5, end: 1_700_000_000_002, failed: true },
    ...{
      attributes: { "http.method": "GET", "http.status_code": 500 },
      link: { traceId: "ab".repeat(16), spanId: "cd".repeat(8) },
    },
  },
  { ...ids, name: "Range", kind: "client", start: 1, end: 2, failed: false, attributes: {}, parentId: "ef".repeat(8) },
];

test("spans are those that were ended, with their times, kinds, parents and links", () => {
  const type = root.lookupType("Request");
  const decoded = type.toObject(type.decode(encodeSpans(spans, { "service.name": "apiserver" })), {
    bytes: String,
    longs: String,
  });
  const base64 = (hex: string): string => Buffer.from(hex, "hex").toString("base64");
  const own = { traceId: base64(ids.traceId), spanId: base64(ids.spanId) };
  assert.deepEqual(decoded, {
    resourceSpans: [
      {
        resource: { attributes: [{ key: "service.name", value: { stringValue: "apiserver" } }] },
        scopeSpans: [
          {
            scope: { name: "coxswain" },
            spans: [
              {
                ...{ ...own, name: "KubernetesAPI", kind: 2 },
                ...{ startTimeUnixNano: "1700000000000500000", endTimeUnixNano: "1700000000002000000" },
                attributes: [
                  { key: "http.method", value: { stringValue: "GET" } },
                  { key: "http.status_code", value: { intValue: "500" } },
                ],
                links: [{ traceId: base64("ab".repeat(16)), spanId: base64("cd".repeat(8)) }],
                status: { code: 2 },
              },
              {
                ...{ ...own, parentSpanId: base64("ef".repeat(8)), name: "Range", kind: 3 },
                ...{ startTimeUnixNano: "1000000", endTimeUnixNano: "2000000" },
              },
            ],
          },
        ],
      },
    ],
  });
});
