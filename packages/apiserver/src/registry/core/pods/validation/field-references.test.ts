import { testRefusals } from "../../../../testing/refusals.ts";
import { checkFieldRef, checkResourceFieldRef, downwardVolumeFields, envFields } from "./field-references.ts";

const supported = (fields: readonly string[]): string => fields.map((field) => `"${field}"`).join(", ");
const ofVariables = [
  ...["metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"],
  ...["status.hostIP", "status.podIP", "status.podIPs"],
];
const ofVolumes = ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const convertedOnly = ["spec.restartPolicy", "spec.schedulerName", "status.phase"];
const nameText =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const prefixText =
  "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

for (const { place, known, fields } of [
  { place: "a variable", known: envFields, fields: ofVariables },
  { place: "a volume", known: downwardVolumeFields, fields: ofVolumes },
]) {
  testRefusals<string>(
    (fieldPath) => checkFieldRef({ apiVersion: "v1", fieldPath }, known, "f"),
    [
      ...fields.map((field) => ({ name: `${field} in ${place}`, input: field, want: [] })),
      ...[...ofVariables, ...ofVolumes, ...convertedOnly]
        .filter((field) => !fields.includes(field))
        .map((field) => ({
          name: `${field} in ${place}`,
          input: field,
          want: [`f.fieldPath: Unsupported value: "${field}": supported values: ${supported(fields)}`],
        })),
    ],
  );
}

testRefusals<string>(
  (fieldPath) => checkFieldRef({ apiVersion: "v1", fieldPath }, envFields, "f"),
  [
    { name: "the former name of a node", input: "spec.host", want: [] },
    { name: "a label", input: "metadata.labels['example.com/A.b_c']", want: [] },
    { name: "an annotation whose domain is in upper case", input: "metadata.annotations['Example.COM/a']", want: [] },
    {
      name: "a label whose domain is in upper case",
      input: "metadata.labels['Example.COM/a']",
      want: [`f: Invalid value: "Example.COM/a": ${prefixText}`],
    },
    {
      name: "a label of no name",
      input: "metadata.labels['']",
      want: ['f: Invalid value: "": name part must be non-empty', `f: Invalid value: "": ${nameText}`],
    },
    {
      name: "a subscript of nothing",
      input: "['a']",
      want: ["f.fieldPath: Invalid value: \"['a']\": error converting fieldPath: field label not supported: ['a']"],
    },
    {
      name: "a property of every object",
      input: "constructor",
      want: ['f.fieldPath: Invalid value: "constructor": error converting fieldPath: field label not supported: constructor'],
    },
  ],
);

const bytes = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const byteText = (what: string): string => `only divisor's values ${bytes.join(", ")} are supported with the ${what}`;
for (const { resource, divisors, wrong, text } of [
  {
    resource: "cpu",
    divisors: ["1m", "1"],
    wrong: ["2m", "2", "1k"],
    text: "only divisor's values 1m and 1 are supported with the cpu resource",
  },
  { resource: "memory", divisors: bytes, wrong: ["1m", "2", "2Mi"], text: byteText("memory resource") },
  {
    resource: "ephemeral-storage",
    divisors: bytes,
    wrong: ["1m", "2", "2Mi"],
    text: byteText("local ephemeral storage resource"),
  },
  { resource: "hugepages-2Mi", divisors: bytes, wrong: ["1m", "2", "2Mi"], text: byteText("hugepages resource") },
]) {
  for (const side of ["limits", "requests"]) {
    const name = `${side}.${resource}`;
    testRefusals<string>(
      (divisor) => checkResourceFieldRef({ resource: name, divisor }, "r", { volume: false, hugePages: true }),
      [
        ...["0", ...divisors].map((divisor) => ({ name: `${name} in parts of ${divisor}`, input: divisor, want: [] })),
        ...wrong.map((divisor) => ({
          name: `${name} in parts of ${divisor}`,
          input: divisor,
          want: [`r.divisor: Invalid value: "${name}": ${text}`],
        })),
      ],
    );
  }
}

const resources = ["limits", "requests"].flatMap((side) =>
  ["cpu", "ephemeral-storage", "memory"].map((resource) => `${side}.${resource}`),
);
testRefusals<{ resource: string; containerName?: string; volume?: boolean }>(
  ({ volume = false, ...reference }) => checkResourceFieldRef(reference, "r", { volume, hugePages: false }),
  [
    {
      name: "a resource of a container in a volume",
      input: { resource: "limits.cpu", containerName: "c", volume: true },
      want: [],
    },
    {
      name: "a resource of no container in a volume",
      input: { resource: "", volume: true },
      want: ["r.containerName: Required value"],
    },
    ...["requests.hugepages-2Mi", "limits.storage", "cpu"].map((resource) => ({
      name: `${resource} without the gate of huge pages`,
      input: { resource },
      want: [`r.resource: Unsupported value: "${resource}": supported values: ${supported(resources)}`],
    })),
  ],
);
