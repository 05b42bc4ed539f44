/** Data that the parts of coxswain-services receive from clients, other name servers and kubelets. */
import assert from "node:assert/strict";
import { lifetimeOf, walkResponse } from "@coxswain/cluster-services/dns/message-walk";
import { parseQuery } from "@coxswain/cluster-services/dns/query";
import { parseResolvConf } from "@coxswain/cluster-services/dns/resolv-conf";
import { parseSamples } from "@coxswain/cluster-services/metrics-api/samples";
import { parseNetwork } from "@coxswain/cluster-services/pod-network/networks";
import { removing } from "@coxswain/cluster-services/services/iptables";
import type { Target } from "../target.ts";

const question = Buffer.from("12340120000100000000000003777777076578616d706c6503636f6d0000010001", "hex");
const withOptions = Buffer.concat([
  question.subarray(0, 10),
  Buffer.of(0, 1),
  question.subarray(12),
  Buffer.from("00002910000000800000", "hex"),
]);
const answer = Buffer.concat([
  Buffer.from("123481800001000100000000", "hex"),
  question.subarray(12),
  Buffer.from("c00c000100010000003c0004c0000201", "hex"),
]);

export const targets: readonly Target[] = [
  {
    name: "dns-query",
    seeds: [question, withOptions],
    dictionary: [Buffer.of(0xc0, 0x0c), Buffer.of(0x3f), Buffer.of(0, 0, 0x29)],
    run(input) {
      const query = parseQuery(input);
      if (!("name" in query)) return;
      assert.ok(query.name.length <= 4 * 255 && query.question.length <= input.length);
    },
  },
  {
    name: "dns-response",
    seeds: [answer],
    dictionary: [Buffer.of(0xc0, 0x0c), Buffer.of(0, 6, 0, 1), Buffer.of(0xff, 0xff)],
    run(input) {
      const walked = walkResponse(input);
      if (walked === undefined) return;
      for (const { dataAt, end } of walked.records) assert.ok(dataAt <= end && end <= input.length);
      for (const isNegative of [true, false]) lifetimeOf(input, walked.records, isNegative);
    },
  },
  {
    name: "resolv-conf",
    seeds: ["nameserver 192.0.2.1\nsearch a. b\noptions ndots:5 edns0\n# c", "nameserver fe80::1%eth0"],
    dictionary: ["nameserver ", "options ", "#", ";", "\n", "%", "::"],
    run: (input) => void parseResolvConf(input.toString()),
  },
  {
    name: "prometheus-text",
    seeds: [
      'container_cpu_usage_seconds_total{container="c",namespace="n",pod="p"} 1.5e+00 1638871872000\ncontainer_memory_working_set_bytes{container="c",namespace="n",pod="p"} 5',
      "# HELP a b\nnode_cpu_usage_seconds_total 1 5\nnode_memory_working_set_bytes 2",
      'container_start_time_seconds{container="a\\"b\\n",namespace="n",pod="p"} NaN',
    ],
    dictionary: ['{container="', '",pod="', '",namespace="', '"} ', "\\", "+Inf", "\n", "e308"],
    run: (input) => void parseSamples(input.toString(), 0),
  },
  {
    name: "iptables-save",
    seeds: ["*nat\n:PREROUTING ACCEPT [0:0]\n:COX-SVC - [0:0]\n-A PREROUTING -j COX-SVC\n-A COX-SVC -g COX-B\nCOMMIT\n"],
    dictionary: ["*", ":COX-", "-A ", " -j COX-", " -g ", "\n", "COMMIT"],
    run(input) {
      for (const line of removing(input.toString(), (chain) => chain.startsWith("COX-")).split("\n"))
        assert.match(line, /^(?:|\*\S+|:COX-\S* - \[0:0\]|-D .*|-X COX-\S*|COMMIT)$/s);
    },
  },
  {
    name: "networks",
    seeds: ["10.244.0.0/24", "fd00:1::/64", "::ffff:1.2.3.4/120"],
    dictionary: ["/", ":", ".", "::", "0/", "/128"],
    run(input) {
      const network = parseNetwork(input.toString());
      if (network !== undefined) assert.equal(parseNetwork(network.text)?.text, network.text);
    },
  },
];
