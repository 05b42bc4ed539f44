import { type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";

const form = "; desired format: https://host[/path]";

/** Validates the URL of a webhook. Source: k8s.io/apiserver pkg/util/webhook/validation.go ValidateWebhookURL */
export function validateWebhookUrl(text: string, path: string): FieldError[] {
  const url = parseUrl(text);
  if ("fault" in url) return [required(path, `url must be a valid URL: parse ${goQuote(text)}: ${url.fault}${form}`)];
  const { scheme, host, user, fragment, query } = url;
  return [
    ...(scheme === "https" ? [] : [invalidValue(path, scheme, `'https' is the only allowed URL scheme${form}`)]),
    ...(host === "" ? [invalidValue(path, host, `host must be specified${form}`)] : []),
    ...(user === undefined ? [] : [invalidValue(path, user, "user information is not permitted in the URL")]),
    ...(fragment === "" ? [] : [invalidValue(path, fragment, "fragments are not permitted in the URL")]),
    ...(query === "" ? [] : [invalidValue(path, query, "query parameters are not permitted in the URL")]),
  ];
}

interface Parts {
  readonly scheme: string;
  readonly host: string;
  /** undefined without `@`. */
  readonly user: string | undefined;
  readonly fragment: string;
  readonly query: string;
}

/**
 * Parses like Go's net/url, which accepts and rejects other URLs than the WHATWG parser of Node.js.
 * Source: net/url Parse
 */
function parseUrl(text: string): Parts | { readonly fault: string } {
  const [whole, fragment] = cut(text, "#");
  if (/[\u0000-\u001f\u007f]/.test(whole)) return { fault: "net/url: invalid control character in URL" };
  if (whole.startsWith(":")) return { fault: "missing protocol scheme" };
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:)/.exec(whole)?.[0] ?? "";
  const [rest, query] = cut(scheme === "" ? whole : whole.slice(scheme.length + 1), "?");
  const parts = { scheme: scheme.toLowerCase(), host: "", user: undefined, fragment, query };
  if (!rest.startsWith("/")) {
    if (scheme !== "") return parts; // opaque
    if (cut(rest, "/")[0].includes(":")) return { fault: "first path segment in URL cannot contain colon" };
  }
  if (!rest.startsWith("//") || (scheme === "" && rest.startsWith("///"))) return escapeFault(rest) ?? parts;
  const authority = cut(rest.slice(2), "/")[0];
  const at = authority.lastIndexOf("@");
  const [user, host] = [at < 0 ? undefined : authority.slice(0, at), authority.slice(at + 1)];
  if (user !== undefined && !/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) return { fault: "net/url: invalid userinfo" };
  return hostFault(host) ?? escapeFault(rest.slice(2 + authority.length)) ?? { ...parts, host, user };
}

function hostFault(host: string): { readonly fault: string } | undefined {
  const isBracketed = host.startsWith("[");
  const end = isBracketed ? host.lastIndexOf("]") + 1 : host.lastIndexOf(":");
  if (isBracketed && end === 0) return { fault: "missing ']' in host" };
  const port = end < 0 ? "" : host.slice(end);
  if (!/^(?::\d*)?$/.test(port)) return { fault: `invalid port ${goQuote(port)} after host` };
  const odd = /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\u{10ffff}]/u.exec(host)?.[0];
  if (odd !== undefined) return { fault: `invalid character ${goQuote(odd)} in host name` };
  const plain = /%(?!25)[0-7][0-9a-fA-F]/.exec(host)?.[0]; // Go allows percent-encoding in hosts only for non-ASCII bytes and %25
  return plain === undefined ? escapeFault(host) : { fault: `invalid URL escape ${goQuote(plain)}` };
}

function escapeFault(text: string): { readonly fault: string } | undefined {
  const broken = /%(?![0-9a-fA-F]{2}).{0,2}/u.exec(text)?.[0];
  return broken === undefined ? undefined : { fault: `invalid URL escape ${goQuote(broken)}` };
}

function cut(text: string, separator: string): [before: string, after: string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
