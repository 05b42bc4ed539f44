import { goQuantity } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { testKindRules } from "../../../testing/kind-rules.ts";

const quantity = (amount: string): string => goQuantity(amount).text;

testKindRules("limitranges", { spec: { limits: [{ type: "Container", max: { cpu: "1" } }] } }, [
  { name: "a range", change: {}, want: [] },
  {
    name: "a type",
    change: { "spec.limits": [{ type: "" }, { type: "a b" }, { type: "Mine" }] },
    want: [
      'spec.limits[0].type: Invalid value: "": name part must be non-empty',
      "spec.limits[0].type: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.limits[1].type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.limits[2].type: Invalid value: "Mine": must be a standard limit type or fully qualified',
    ],
  },
  {
    name: "a type twice",
    change: { "spec.limits[1]": { type: "Container" } },
    want: ['spec.limits[1].type: Duplicate value: "Container"'],
  },
  {
    name: "defaults of a pod",
    change: { "spec.limits": [{ type: "Pod", default: { cpu: "1" }, defaultRequest: { cpu: "1" } }] },
    want: [
      "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
      "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
    ],
  },
  {
    name: "no size of a claim",
    change: { "spec.limits": [{ type: "PersistentVolumeClaim", max: { cpu: "1" } }] },
    want: [
      "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
    ],
  },
  {
    name: "amounts that are not in order",
    change: {
      "spec.limits": [
        { type: "Container", min: { cpu: "3" }, max: { cpu: "2" }, default: { cpu: "1" }, defaultRequest: { cpu: "4" } },
      ],
    },
    want: [
      'spec.limits[0].min[cpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:3, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"3", Format:"DecimalSI"}: min value 3 is greater than max value 2',
      'spec.limits[0].defaultRequest[cpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:4, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"4", Format:"DecimalSI"}: default request value 4 is greater than max value 2',
      'spec.limits[0].defaultRequest[cpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:4, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"4", Format:"DecimalSI"}: default request value 4 is greater than default limit value 1',
      'spec.limits[0].default[cpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:3, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"3", Format:"DecimalSI"}: min value 3 is greater than default value 1',
    ],
  },
  {
    name: "a ratio below one, and one that cannot be",
    change: {
      "spec.limits": [
        { type: "Container", maxLimitRequestRatio: { cpu: "500m", memory: "3" }, min: { memory: "1" }, max: { memory: "2" } },
      ],
    },
    want: [
      'spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: resource.Quantity{i:resource.int64Amount{value:3, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"3", Format:"DecimalSI"}: ratio 3 is greater than max/min = 2.000000',
      'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"500m", Format:"DecimalSI"}: ratio 500m is less than 1',
    ],
  },
  {
    name: "a ratio below one that is above that of the limits, too",
    change: {
      "spec.limits": [{ type: "Container", maxLimitRequestRatio: { cpu: "500m" }, min: { cpu: "4" }, max: { cpu: "1" } }],
    },
    want: [
      `spec.limits[0].min[cpu]: Invalid value: ${quantity("4")}: min value 4 is greater than max value 1`,
      `spec.limits[0].defaultRequest[cpu]: Invalid value: ${quantity("1")}: min value 4 is greater than default request value 1`,
      `spec.limits[0].default[cpu]: Invalid value: ${quantity("4")}: min value 4 is greater than default value 1`,
      `spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: ${quantity("500m")}: ratio 500m is less than 1`,
      `spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: ${quantity("500m")}: ratio 500m is greater than max/min = 0.250000`,
    ],
  },
  {
    name: "defaults of pods, which are not compared",
    change: { "spec.limits": [{ type: "Pod", max: { cpu: "1" }, default: { cpu: "2" }, defaultRequest: { cpu: "3" } }] },
    want: ["default", "defaultRequest"].map(
      (field) => `spec.limits[0].${field}: Forbidden: may not be specified when \`type\` is 'Pod'`,
    ),
  },
  {
    name: "a default that is not the request's",
    change: { "spec.limits": [{ type: "Container", default: { "a.com/x": "1" }, defaultRequest: { "a.com/x": "2" } }] },
    want: [
      'spec.limits[0].defaultRequest[a.com/x]: Invalid value: resource.Quantity{i:resource.int64Amount{value:2, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"2", Format:"DecimalSI"}: default request value 2 is greater than default limit value 1',
      'spec.limits[0].defaultRequest[a.com/x]: Invalid value: resource.Quantity{i:resource.int64Amount{value:2, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"2", Format:"DecimalSI"}: default value 1 must equal to defaultRequest value 2 in a.com/x',
    ],
  },
  {
    name: "an unknown type, later",
    before: {},
    change: { "spec.limits": [{ type: "a b" }] },
    want: [
      "spec.limits[0].type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "limits by names that are none",
    change: {
      "spec.limits": [
        {
          type: "Container",
          max: { "a b": "1" },
          min: { "a b": "1" },
          default: { "a b": "1" },
          defaultRequest: { "a b": "1" },
          maxLimitRequestRatio: { "a b": "1" },
        },
      ],
    },
    want: [
      "spec.limits[0].max[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.limits[0].max[a b]: Invalid value: "a b": must be a standard resource for containers',
      "spec.limits[0].min[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.limits[0].min[a b]: Invalid value: "a b": must be a standard resource for containers',
      "spec.limits[0].default[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.limits[0].default[a b]: Invalid value: "a b": must be a standard resource for containers',
      "spec.limits[0].defaultRequest[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.limits[0].defaultRequest[a b]: Invalid value: "a b": must be a standard resource for containers',
      "spec.limits[0].maxLimitRequestRatio[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.limits[0].maxLimitRequestRatio[a b]: Invalid value: "a b": must be a standard resource for containers',
    ],
  },
  {
    name: "limits of another program's type, and of a claim's size",
    change: {
      "spec.limits": [
        { type: "example.com/Image", max: { storage: "1Gi" }, default: { storage: "1Gi" } },
        { type: "PersistentVolumeClaim", max: { storage: "1Gi" } },
      ],
    },
    want: [],
  },
  ...["Pod", "Container"].map((type) => ({
    name: `limits of a ${type}'s storage`,
    change: { "spec.limits": [{ type, max: { storage: "1", "ephemeral-storage": "1", "hugepages-2Mi": "2Mi" } }] },
    want: [
      ...(type === "Pod" ? ["max"] : ["max", "default", "defaultRequest"]).map(
        (list) => `spec.limits[0].${list}[storage]: Invalid value: "storage": must be a standard resource for containers`,
      ),
    ],
  })),
  {
    name: "a ratio of a pod, of one and of exactly what its limits allow",
    change: {
      "spec.limits": [
        {
          type: "Pod",
          min: { cpu: "500m", memory: "1Gi" },
          max: { cpu: "2", memory: "1Gi" },
          maxLimitRequestRatio: { cpu: "4", memory: "1" },
        },
      ],
    },
    want: [],
  },
  {
    name: "a default above the greatest limit and below the least",
    change: {
      "spec.limits": [
        {
          type: "Container",
          min: { cpu: "2", memory: "1" },
          max: { cpu: "4", memory: "2" },
          default: { cpu: "1", memory: "3" },
          defaultRequest: { cpu: "2", memory: "1" },
        },
      ],
    },
    want: [
      `spec.limits[0].defaultRequest[cpu]: Invalid value: ${quantity("2")}: default request value 2 is greater than default limit value 1`,
      `spec.limits[0].default[cpu]: Invalid value: ${quantity("2")}: min value 2 is greater than default value 1`,
      `spec.limits[0].default[memory]: Invalid value: ${quantity("2")}: default value 3 is greater than max value 2`,
    ],
  },
  {
    name: "a default of huge pages that is not the request's",
    change: {
      "spec.limits": [
        {
          type: "Container",
          default: { cpu: "2", "hugepages-2Mi": "4Mi" },
          defaultRequest: { cpu: "1", "hugepages-2Mi": "2Mi" },
        },
      ],
    },
    want: [
      `spec.limits[0].defaultRequest[hugepages-2Mi]: Invalid value: ${quantity("2Mi")}: default value 4Mi must equal to defaultRequest value 2Mi in hugepages-2Mi`,
    ],
  },
]);
