import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { valuesOfFlags } from "@coxswain/apimachinery/flags/settings";
import { nodeCidrSettings } from "../../flags/generic.ts";
import { nodeIpamSettings } from "../../flags/nodes.ts";
import { kubeControllerManager } from "../../flags.ts";
import { nodeIpamConfigOf } from "./config.ts";

const configOf = (argv: readonly string[]) => {
  const errors: string[] = [];
  const { values, set } = parseFlags(kubeControllerManager.flags, [...argv]);
  return { ...nodeIpamConfigOf(valuesOfFlags({ ...nodeCidrSettings, ...nodeIpamSettings }, values), errors, set), errors };
};
const allocate = "--allocate-node-cidrs";

for (const { flags, ranges, serviceCidrs = [] } of [
  { flags: [], ranges: [] },
  { flags: [`${allocate}=false`, "--cluster-cidr=10.0.0.0/16", "--service-cluster-ip-range=10.0.0.0/24"], ranges: [] },
  { flags: [allocate, "--cluster-cidr=10.0.0.0/16"], ranges: ["10.0.0.0/16 24"] },
  { flags: [allocate, "--cluster-cidr=fd00::/56"], ranges: ["fd00::/56 64"] },
  { flags: [allocate, "--cluster-cidr=fd00::/48"], ranges: ["fd00::/48 64"] },
  { flags: [allocate, "--cluster-cidr=fd00::/112", "--node-cidr-mask-size=128"], ranges: ["fd00::/112 128"] },
  { flags: [allocate, "--cluster-cidr=10.0.0.0/24"], ranges: ["10.0.0.0/24 24"] },
  { flags: [allocate, "--cluster-cidr=10.0.0.0/8", "--node-cidr-mask-size=32"], ranges: ["10.0.0.0/8 32"] },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--service-cluster-ip-range= 10.0.0.0/24 , fd01::/108"],
    ranges: ["10.0.0.0/16 24"],
    serviceCidrs: ["10.0.0.0/24", "fd01::/108"],
  },
  { flags: [allocate, "--cluster-cidr=10.0.0.0/16,fd00::/56"], ranges: ["10.0.0.0/16 24", "fd00::/56 64"] },
  {
    flags: [allocate, "--cluster-cidr=fd00::/56,10.0.0.0/16", "--node-cidr-mask-size-ipv4=20", "--node-cidr-mask-size-ipv6=60"],
    ranges: ["fd00::/56 60", "10.0.0.0/16 20"],
  },
  { flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--node-cidr-mask-size=26"], ranges: ["10.0.0.0/16 26"] },
  { flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--node-cidr-mask-size-ipv4=26"], ranges: ["10.0.0.0/16 26"] },
  { flags: [allocate, "--cluster-cidr=fd00::/56", "--node-cidr-mask-size-ipv6=66"], ranges: ["fd00::/56 66"] },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--service-cluster-ip-range=10.0.0.0/24,fd01::/108"],
    ranges: ["10.0.0.0/16 24"],
    serviceCidrs: ["10.0.0.0/24", "fd01::/108"],
  },
]) {
  test(`${flags.join(" ")} is taken`, () => {
    const config = configOf(flags);
    assert.deepEqual(config.errors, []);
    assert.deepEqual(
      config.ranges.map(({ cidr, maskSize }) => `${cidr} ${maskSize}`),
      ranges,
    );
    assert.deepEqual(config.serviceCidrs, serviceCidrs);
  });
}

for (const { flags, message } of [
  { flags: ["--cluster-cidr=10.0.0.0/8"], message: "--cluster-cidr needs --allocate-node-cidrs=true" },
  { flags: ["--service-cluster-ip-range=10.0.0.0/24"], message: "--service-cluster-ip-range needs --allocate-node-cidrs=true" },
  { flags: [allocate], message: 'failed to parse cidr value:"" with error:invalid CIDR address: ' },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/8,x"],
    message: 'failed to parse cidr value:"x" with error:invalid CIDR address: x',
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16,10.1.0.0/16"],
    message: "len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each IPFamily)",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16,fd00::/56,10.1.0.0/16"],
    message: "length of clusterCIDRs is:3 more than max allowed of 2",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16,fd00::/56", "--node-cidr-mask-size=24"],
    message: "usage of --node-cidr-mask-size is not allowed with dual-stack clusters",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--node-cidr-mask-size=24", "--node-cidr-mask-size-ipv4=24"],
    message:
      "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags",
  },
  {
    flags: [allocate, "--cluster-cidr=fd00::/56", "--node-cidr-mask-size-ipv4=24"],
    message: "usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--node-cidr-mask-size-ipv6=64"],
    message: "usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/25"],
    message:
      "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--node-cidr-mask-size=33"],
    message:
      "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family",
  },
  {
    flags: [allocate, "--cluster-cidr=fd00::/120", "--node-cidr-mask-size=129"],
    message:
      "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family",
  },
  { flags: [allocate, "--cluster-cidr=fd00::/47"], message: "New CIDR set failed; the node CIDR size is too big" },
  { flags: [allocate, "--cluster-cidr=fd00::/40"], message: "New CIDR set failed; the node CIDR size is too big" },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24"],
    message: "serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--service-cluster-ip-range=a,b,c"],
    message: "--service-cluster-ip-range can not contain more than two entries",
  },
  {
    flags: [allocate, "--cluster-cidr=10.0.0.0/16", "--cidr-allocator-type=CloudAllocator"],
    message: "--cidr-allocator-type is set to 'CloudAllocator' but cloud provider is not configured",
  },
]) {
  test(`${flags.join(" ")} is refused`, () => assert.deepEqual(configOf(flags).errors, [message]));
}
