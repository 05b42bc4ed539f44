import { testRefusals } from "../testing/refusals.ts";
import { validateConditions } from "./conditions.ts";

const valid = { type: "A", status: "True", lastTransitionTime: "2022-01-01T00:00:00Z", reason: "R", message: "" } as const;
const reasonText =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

testRefusals<object[] | undefined>(
  (conditions) => validateConditions(conditions as never, "c"),
  [
    { name: "no conditions", input: undefined, want: [] },
    { name: "conditions of different types", input: [valid, { ...valid, type: "a.b/A", status: "False" }], want: [] },
    { name: "an unknown status and generation 0", input: [{ ...valid, status: "Unknown", observedGeneration: 0 }], want: [] },
    {
      name: "the longest reason and message",
      input: [{ ...valid, reason: "R".repeat(1024), message: "m".repeat(32_768) }],
      want: [],
    },
    {
      name: "a longer reason and message, of the second condition",
      input: [valid, { ...valid, type: "B", reason: "R".repeat(1025), message: "m".repeat(32_769) }],
      want: ["c[1].reason: Too long: must have at most 1024 bytes", "c[1].message: Too long: must have at most 32768 bytes"],
    },
    {
      name: "a message whose bytes, not characters, are too many",
      input: [{ ...valid, message: "é".repeat(16_385) }],
      want: ["c[0].message: Too long: must have at most 32768 bytes"],
    },
    {
      name: "a reason that ends with a comma",
      input: [{ ...valid, reason: "R," }],
      want: [`c[0].reason: Invalid value: "R,": ${reasonText}`],
    },
    {
      name: "nothing but a type that is there, and a negative generation",
      input: [valid, { type: "A", observedGeneration: -1 }],
      want: [
        'c[1].type: Duplicate value: "A"',
        'c[1].status: Unsupported value: "": supported values: "False", "True", "Unknown"',
        "c[1].observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "c[1].lastTransitionTime: Required value: must be set",
        "c[1].reason: Required value: must be set",
      ],
    },
  ],
);
