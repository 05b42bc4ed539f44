import type { Condition } from "@coxswain/apimachinery/objects/meta/types";
import { testRefusals } from "../testing/refusals.ts";
import { validateConditions } from "./conditions.ts";

const condition = { type: "a.b/Ready", status: "True", lastTransitionTime: "2022-01-01T00:00:00Z", reason: "A", message: "" };
const reasonText =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
const at = "status.conditions[0]";

testRefusals<object[]>(
  (conditions) => validateConditions(conditions.map((one) => ({ ...condition, ...one })) as Condition[], "status.conditions"),
  [
    {
      name: "conditions of each status, of generation 0, with reason and message as long as they may be",
      input: [
        { type: "A", status: "False", observedGeneration: 0 },
        { type: "B", status: "Unknown", reason: "r".repeat(1024) },
        { type: "C", message: "m".repeat(32 * 1024) },
      ],
      want: [],
    },
    {
      name: "a reason and a message of one character too many",
      input: [{ reason: "r".repeat(1025), message: "m".repeat(32 * 1024 + 1) }],
      want: [`${at}.reason: Too long: must have at most 1024 bytes`, `${at}.message: Too long: must have at most 32768 bytes`],
    },
    ...["a", "A_b", "A,B:C", "a_", "A1"].map((reason) => ({ name: `the reason ${reason}`, input: [{ reason }], want: [] })),
    ...["1a", "_a", "a:", "a,", "a b", "a-b"].map((reason) => ({
      name: `the reason ${reason}`,
      input: [{ reason }],
      want: [`${at}.reason: Invalid value: "${reason}": ${reasonText}`],
    })),
    {
      name: "a condition of nothing",
      input: [{ type: "", status: "", reason: "", lastTransitionTime: null, observedGeneration: -1 }],
      want: [
        `${at}.type: Invalid value: "": name part must be non-empty`,
        `${at}.type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
        `${at}.status: Unsupported value: "": supported values: "False", "True", "Unknown"`,
        `${at}.observedGeneration: Invalid value: -1: must be greater than or equal to 0`,
        `${at}.lastTransitionTime: Required value: must be set`,
        `${at}.reason: Required value: must be set`,
      ],
    },
    {
      name: "the third condition of the first one's type",
      input: [{ type: "A" }, { type: "B" }, { type: "A" }],
      want: ['status.conditions[2].type: Duplicate value: "A"'],
    },
  ],
);
