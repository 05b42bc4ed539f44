/** Short strings in fields, flags and queries. */
import assert from "node:assert/strict";
import { parseSchedule } from "@coxswain/apimachinery/cron/parse";
import { canonicalMicroTime, canonicalTime } from "@coxswain/apimachinery/objects/codec/go-time";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { compareKubeVersions, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { scaledValue } from "@coxswain/apimachinery/objects/meta/int-or-string";
import { bigIntToIp, canonicalIp, cidrContains, ipToBigInt, parseCidr, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import { safeEncode } from "@coxswain/apimachinery/objects/meta/names";
import { canonicalQuantity, Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { parseResourceVersion } from "@coxswain/apimachinery/objects/meta/resource-version";
import {
  durationRefusal,
  formatDuration,
  parseDuration,
  parseTime,
  parseZonedTime,
} from "@coxswain/apimachinery/objects/meta/time";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import {
  dns1035LabelProblems,
  dns1123LabelProblems,
  dns1123SubdomainProblems,
  wildcardDns1123SubdomainProblems,
} from "@coxswain/apimachinery/objects/validation/dns";
import { parseImageReference, withDefaultTag } from "@coxswain/apimachinery/objects/validation/image-reference";
import { Pattern, PatternError } from "@coxswain/apimachinery/objects/validation/pattern";
import { labelValueProblems, qualifiedNameProblems } from "@coxswain/apimachinery/objects/validation/qualified-name";
import { isExtendedResource, isNativeResource } from "@coxswain/apimachinery/objects/validation/resource-names";
import type { Target } from "../target.ts";

export const targets: readonly Target[] = [
  {
    name: "quantity",
    seeds: ["100m", "1.5Gi", "1e9", "-0.1n", "+12E-3", "9223372036854775807", "1Ki"],
    dictionary: ["n", "u", "m", "k", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "E", "e", ".", "-", "+", "00000"],
    declares: [Error],
    maxBytes: 300,
    run(input) {
      const quantity = Quantity.parse(input.toString());
      const text = quantity.toString();
      const again = Quantity.parse(text);
      // Beyond 2^63 the precision depends on the number of digits written.
      if (quantity.value() < 2 ** 63 && quantity.value() > -(2 ** 63)) {
        assert.ok(again.equals(quantity), `${text} is another amount`);
        assert.equal(again.toString(), text);
      }
      assert.equal(canonicalQuantity(input.toString()), text);
      for (const scale of [-12, -9, -3, 0, 3, 9]) quantity.scaledValue(scale);
    },
  },
  {
    name: "duration",
    seeds: ["1h2m3.5s", "-300ms", "1.5us", "0", ".5h", "9223372036s"],
    dictionary: ["ns", "us", "µs", "ms", "s", "m", "h", ".", "-", "+"],
    maxBytes: 300,
    run(input) {
      const text = input.toString();
      const ms = parseDuration(text);
      if (ms === undefined) return void durationRefusal(text);
      const written = formatDuration(ms);
      // Milliseconds with fractions lose precision beyond 2^53.
      if (Math.abs(ms) < 1e9) assert.ok(Math.abs(parseDuration(written)! - ms) < 1e-3, written);
    },
  },
  {
    name: "time",
    seeds: ["2021-12-07T10:11:12Z", "2020-02-29T23:59:59.999999999+14:00", "0001-01-01T00:00:00-23:59"],
    dictionary: ["T", "Z", ":", "-", "+", ".", "0000", "9999", "24"],
    declares: [Error],
    maxBytes: 100,
    run(input) {
      const text = input.toString();
      parseZonedTime(text);
      parseTime(text);
      for (const canonical of [canonicalTime, canonicalMicroTime]) {
        const once = canonical(text);
        // The offset may move the year out of the range of four digits.
        if (once !== undefined && /^\d{4}-/.test(once)) assert.equal(canonical(once), once);
      }
    },
  },
  {
    name: "label-selector",
    seeds: ["app=web,tier in (a,b),!old,x>5", "a notin (b),c", "a!=b,c==d,e<4", "x in ()"],
    dictionary: [" in ", " notin ", "(", ")", ",", "!", "!=", "==", "<", ">", "example.com/"],
    run(input) {
      const selector = LabelSelector.parse(input.toString());
      const text = selector.toString();
      assert.equal(LabelSelector.parse(text).toString(), text);
      const labels = { app: "web", tier: "a", x: "6" };
      assert.equal(LabelSelector.parse(text).matches(labels), selector.matches(labels), text);
    },
  },
  {
    name: "field-selector",
    seeds: ["metadata.name=a,status.phase!=Running", "a==b\\,c", "a=\\\\"],
    dictionary: ["\\", ",", "=", "!=", "==", "metadata.name"],
    run(input) {
      const selector = FieldSelector.parse(input.toString());
      const again = FieldSelector.parse(selector.toString());
      assert.deepEqual(new Set(again.terms), new Set(selector.terms));
      selector.matches({ "metadata.name": "a" });
    },
  },
  {
    name: "names",
    seeds: ["web-0", "example.com/name", "*.example.com", "requests.nvidia.com/gpu", "hugepages-2Mi", "v1beta1", "apps/v1"],
    dictionary: [".", "-", "/", "*", "kubernetes.io/", "v2alpha3"],
    run(input) {
      const text = input.toString();
      for (const check of [
        dns1123LabelProblems,
        dns1123SubdomainProblems,
        dns1035LabelProblems,
        wildcardDns1123SubdomainProblems,
        qualifiedNameProblems,
        labelValueProblems,
      ])
        check(text);
      isNativeResource(text);
      isExtendedResource(text);
      safeEncode(text);
      parseGroupVersion(text);
      assert.equal(Math.sign(compareKubeVersions(text, "v1beta1")), -Math.sign(compareKubeVersions("v1beta1", text)) + 0);
      assert.ok(goQuote(text).length >= 2);
    },
  },
  {
    name: "percent",
    seeds: ["25%", "-1%", "100"],
    declares: [Error],
    run: (input) => void scaledValue(input.toString(), 10, true),
  },
  {
    name: "resource-version",
    seeds: ["0", "123", "18446744073709551615"],
    declares: [Error],
    run: (input) => assert.ok(parseResourceVersion(input.toString()) >= 0),
  },
  {
    name: "ip",
    seeds: ["192.0.2.1", "010.0.0.1", "::ffff:192.0.2.1", "2001:db8::1", "fe80::1%eth0", "1:2:3:4:5:6:7:8"],
    dictionary: ["::", ":", ".", "ffff", "%"],
    maxBytes: 200,
    run(input) {
      const ip = parseIp(input.toString());
      if (ip === undefined) return;
      const canonical = canonicalIp(ip);
      assert.equal(canonicalIp(canonical), canonical);
      const family = canonical.includes(":") ? 6 : 4;
      assert.equal(bigIntToIp(ipToBigInt(canonical), family), canonical);
    },
  },
  {
    name: "cidr",
    seeds: ["10.0.0.0/8", "2001:db8::/32", "::ffff:10.0.0.0/104", "0.0.0.0/0"],
    dictionary: ["/", "::", "/128", "/33", "."],
    maxBytes: 200,
    run(input) {
      const text = input.toString();
      const range = parseCidr(text);
      if (range !== undefined) assert.ok(cidrContains(text, range.ip), "a range has its own address");
    },
  },
  {
    name: "cron",
    seeds: ["*/5 0-23/2 1,15 jan-dec sun", "@every 1h30m", "TZ=Europe/Berlin 0 9 * * 1-5", "@daily", "0 0 30 2 *"],
    dictionary: ["*", "/", "-", ",", "?", "CRON_TZ=", "@hourly", "UTC ", "fri", " "],
    declares: [Error],
    maxBytes: 200,
    run(input) {
      const schedule = parseSchedule(input.toString());
      const now = Date.UTC(2021, 11, 7);
      const next = schedule.next(now);
      assert.ok(next === undefined || next > now);
    },
  },
  {
    name: "image-reference",
    seeds: ["registry.example:5000/team/app:1.2", "nginx", `a/b@sha256:${"0".repeat(64)}`, "[::1]:5000/a", "localhost/x"],
    dictionary: [":", "/", "@sha256:", "docker.io/", "__", "."],
    run(input) {
      const text = input.toString();
      const reference = parseImageReference(text);
      const tagged = withDefaultTag(text);
      assert.equal(tagged === undefined, reference === undefined);
      if (tagged !== undefined) assert.ok(parseImageReference(tagged) !== undefined, tagged);
    },
  },
  {
    name: "pattern",
    seeds: ["^[a-z]+(-[0-9]{1,3})?$", "(?i)a|b*?", "\\p{Greek}+", "[[:alpha:]^]\\x{41}", "(a{2,5}){3}", "(?P<n>.)(?:x)"],
    dictionary: ["(?:", "(?i)", ")", "{1,1000}", "*", "+?", "[^", "]", "\\p{L}", "\\pN", "\\Q", "\\E", "|", "\\b", "[[:word:]]"],
    declares: [PatternError],
    maxBytes: 300,
    run(input) {
      const pattern = new Pattern(input.toString());
      for (const text of ["", "abc-12", "é\u{1f600}x", "a".repeat(1000)]) if (pattern.canMatch(text)) pattern.matches(text);
    },
  },
];
