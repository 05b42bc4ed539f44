import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "events.events.k8s.io",
  {
    eventTime: "2020-01-01T00:00:00.000000Z",
    reportingComponent: "a.b/c",
    reportingInstance: "i",
    action: "a",
    reason: "r",
    type: "Normal",
    involvedObject: { namespace: "default" },
  },
  [
    { name: "an event", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { reportingComponent: "", reportingInstance: "", action: "", reason: "", type: "Odd" },
      want: [
        "reportingController: Required value",
        'reportingController: Invalid value: "": name part must be non-empty',
        "reportingController: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "reportingInstance: Required value",
        "action: Required value",
        "reason: Required value",
        'type: Invalid value: "": has invalid value: Odd',
      ],
    },
    {
      name: "fields of legacy recorders, and a series of one event",
      change: {
        eventTime: undefined,
        firstTimestamp: "2020-01-01T00:00:00Z",
        lastTimestamp: "2020-01-01T00:00:00Z",
        count: 1,
        source: { component: "c" },
        series: { count: 1 },
      },
      want: [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
        "eventTime: Required value",
        'firstTimestamp: Invalid value: "": needs to be unset',
        'lastTimestamp: Invalid value: "": needs to be unset',
        'count: Invalid value: "": needs to be unset',
        'source: Invalid value: "": needs to be unset',
      ],
    },
    {
      name: "no time, of an object elsewhere",
      before: {},
      change: { eventTime: undefined, "involvedObject.namespace": "other" },
      want: ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    },
    ...["Normal", "Warning"].map((type) => ({ name: `an event of type ${type}`, change: { type }, want: [] })),
    { name: "a series of two", change: { series: { count: 2, lastObservedTime: "2020-01-01T00:00:00.000000Z" } }, want: [] },
    {
      name: "metadata after the event, and finalizers without domain",
      change: { action: "", "metadata.labels": { "a b": "c" }, "metadata.finalizers": ["mine"] },
      want: [
        "action: Required value",
        "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
      ],
    },
    { name: "a finalizer without domain on update", before: {}, change: { "metadata.finalizers": ["mine"] }, want: [] },
    {
      name: "a finalizer without domain in v1beta1",
      requestVersion: "v1beta1",
      change: { "metadata.finalizers": ["mine"] },
      want: [],
    },
    {
      name: "in v1beta1 what is no event in v1",
      requestVersion: "v1beta1",
      change: {
        eventTime: undefined,
        reportingComponent: "",
        reportingInstance: "",
        action: "",
        reason: "",
        type: "Odd",
        count: 1,
      },
      want: [],
    },
  ],
);
