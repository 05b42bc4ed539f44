/**
 * DNS names. Each function returns upstream's error texts, none for a valid name.
 * Source: k8s.io/apimachinery pkg/util/validation/validation.go
 */
const label1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const subdomain1123 = `${label1123}(\\.${label1123})*`;
const label1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const wildcard = `\\*\\.${subdomain1123}`;

// Labels of a subdomain are matched separately: the complete expression could backtrack.
const label1123Form = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const label1035Form = /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/;
const matchesSubdomain = (value: string): boolean => value.split(".").every((part) => label1123Form.test(part));

const label1123Text =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const subdomain1123Text =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const label1035Text =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const wildcardText =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";

const dns1123LabelMaxLength = 63;
const dns1123SubdomainMaxLength = 253;

/** At most 63 bytes. Returns upstream's error texts; none for a valid value. Source: validation.IsDNS1123Label */
export function dns1123LabelProblems(value: string): string[] {
  const errors = checkLength(value, dns1123LabelMaxLength);
  if (!label1123Form.test(value)) errors.push(regexError(label1123Text, label1123, "my-name", "123-abc"));
  return errors;
}

/** At most 253 bytes. Source: validation.IsDNS1123Subdomain */
export function dns1123SubdomainProblems(value: string): string[] {
  const errors = checkLength(value, dns1123SubdomainMaxLength);
  if (!matchesSubdomain(value)) errors.push(regexError(subdomain1123Text, subdomain1123, "example.com"));
  return errors;
}

/** As a DNS-1123 label, but it begins with a letter. Source: validation.IsDNS1035Label */
export function dns1035LabelProblems(value: string): string[] {
  const errors = checkLength(value, dns1123LabelMaxLength);
  if (!label1035Form.test(value)) errors.push(regexError(label1035Text, label1035, "my-name", "abc-123"));
  return errors;
}

/** As `*.example.com`. */
export function wildcardDns1123SubdomainProblems(value: string): string[] {
  const errors = checkLength(value, dns1123SubdomainMaxLength);
  if (!value.startsWith("*.") || !matchesSubdomain(value.slice(2)))
    errors.push(regexError(wildcardText, wildcard, "*.example.com"));
  return errors;
}

/** Error text for a value that does not match a regular expression. Source: validation.RegexError */
export function regexError(text: string, form: string, ...examples: string[]): string {
  if (examples.length === 0) return `${text} (regex used for validation is '${form}')`;
  return `${text} (e.g. ${examples.map((example) => `'${example}', `).join(" or ")}regex used for validation is '${form}')`;
}

/** Upstream says characters, and counts octets. Source: validation.MaxLenError */
export function maxLengthError(length: number): string {
  return `must be no more than ${length} characters`;
}

function checkLength(value: string, most: number): string[] {
  return Buffer.byteLength(value) > most ? [maxLengthError(most)] : [];
}

/** Error texts for a name that is not a valid path segment. Source: k8s.io/apimachinery pkg/api/validation/path */
export function pathSegmentFaults(name: string): string[] {
  if (name === "." || name === "..") return [`may not be '${name}'`];
  if (!name.includes("/") && !name.includes("%")) return [];
  return ["/", "%"].filter((character) => name.includes(character)).map((character) => `may not contain '${character}'`);
}
