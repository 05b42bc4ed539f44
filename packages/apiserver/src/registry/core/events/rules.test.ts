import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "events",
  { metadata: { name: "e", namespace: "default" }, involvedObject: { kind: "Pod", namespace: "default" } },
  [
    { name: "an event", change: {}, want: [] },
    {
      name: "an event of a pod elsewhere",
      change: { "involvedObject.namespace": "other" },
      want: ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    },
    {
      name: "a precise time and no reporter",
      change: { eventTime: "2022-01-01T00:00:00.000000Z" },
      want: [
        "reportingController: Required value",
        'reportingController: Invalid value: "": name part must be non-empty',
        "reportingController: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "reportingInstance: Required value",
        "action: Required value",
        "reason: Required value",
      ],
    },
    {
      name: "a malformed reporter with too many fields",
      change: {
        eventTime: "2022-01-01T00:00:00.000000Z",
        reportingComponent: "a b",
        reportingInstance: "i".repeat(129),
        action: "a".repeat(129),
        reason: "r".repeat(129),
        message: "m".repeat(1025),
      },
      want: [
        "reportingController: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'reportingInstance: Invalid value: "": can have at most 128 characters',
        'action: Invalid value: "": can have at most 128 characters',
        'reason: Invalid value: "": can have at most 128 characters',
        'message: Invalid value: "": can have at most 1024 characters',
      ],
    },
    {
      name: "a series of one",
      change: {
        eventTime: "2022-01-01T00:00:00.000000Z",
        reportingComponent: "c",
        reportingInstance: "i",
        action: "A",
        reason: "R",
        type: "Normal",
        series: { count: 1 },
      },
      want: [],
    },
    {
      name: "another namespace than that of what it is about",
      before: {},
      change: { "involvedObject.namespace": "other" },
      want: ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    },
  ],
);
