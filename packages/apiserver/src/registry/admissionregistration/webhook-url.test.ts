import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { validateWebhookUrl } from "./webhook-url.ts";

const form = "; desired format: https://host[/path]";
const noScheme = `url: Invalid value: "": 'https' is the only allowed URL scheme${form}`;
const noHost = `url: Invalid value: "": host must be specified${form}`;
const broken = (text: string, fault: string): string =>
  `url: Required value: url must be a valid URL: parse ${JSON.stringify(text)}: ${fault}${form}`;

for (const { url, want } of [
  { url: "https://example.com", want: [] },
  { url: "HTTPS://example.com:8443/a%20b/c", want: [] },
  { url: "https://[::1]:8443/", want: [] },
  { url: "", want: [noScheme, noHost] },
  { url: "example.com/path", want: [noScheme, noHost] },
  { url: "https://", want: [noHost] },
  { url: "//example.com", want: [noScheme] },
  { url: "///a@b c", want: [noScheme, noHost] },
  { url: "https:///a", want: [noHost] },
  { url: "https:opaque", want: [noHost] },
  { url: "http://a", want: [`url: Invalid value: "http": 'https' is the only allowed URL scheme${form}`] },
  { url: "https://u:p@a", want: ['url: Invalid value: "u:p": user information is not permitted in the URL'] },
  { url: "https://@a", want: ['url: Invalid value: "": user information is not permitted in the URL'] },
  {
    url: "a#b://c?d",
    want: [noScheme, noHost, 'url: Invalid value: "b://c?d": fragments are not permitted in the URL'],
  },
  { url: "https://a?x=y", want: ['url: Invalid value: "x=y": query parameters are not permitted in the URL'] },
  { url: "https://a?", want: [] },
  { url: "https://a b", want: [broken("https://a b", 'invalid character " " in host name')] },
  { url: "https://a:b", want: [broken("https://a:b", 'invalid port ":b" after host')] },
  { url: "https://[::1", want: [broken("https://[::1", "missing ']' in host")] },
  { url: "https://[::1]x", want: [broken("https://[::1]x", 'invalid port "x" after host')] },
  { url: "https://[a]x", want: [broken("https://[a]x", 'invalid port "x" after host')] },
  { url: "https://a%25b", want: [] },
  { url: "a%zz", want: [broken("a%zz", 'invalid URL escape "%zz"')] },
  { url: "https://a/%zz", want: [broken("https://a/%zz", 'invalid URL escape "%zz"')] },
  { url: "https://a%41b", want: [broken("https://a%41b", 'invalid URL escape "%41"')] },
  { url: "https://a<b@c", want: [broken("https://a<b@c", "net/url: invalid userinfo")] },
  { url: "https://u@v@a b", want: [broken("https://u@v@a b", 'invalid character " " in host name')] },
  { url: ":a", want: [broken(":a", "missing protocol scheme")] },
  { url: "a.b:80/c", want: [`url: Invalid value: "a.b": 'https' is the only allowed URL scheme${form}`, noHost] },
  { url: "1.2:80/c", want: [broken("1.2:80/c", "first path segment in URL cannot contain colon")] },
  { url: "https://a\n", want: [broken("https://a\n", "net/url: invalid control character in URL")] },
]) {
  test(`a webhook at ${JSON.stringify(url)}`, () => {
    assert.deepEqual(validateWebhookUrl(url, "url").map(formatFieldError), want);
  });
}
