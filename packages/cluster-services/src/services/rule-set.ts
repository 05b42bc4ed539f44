import { chainNames, type Dispatch, type PortRules, portsOfBucket, type RuleSettings } from "./port-rules.ts";

export type Table = "nat" | "filter";
export const tables: readonly Table[] = ["nat", "filter"];

/** A rule in a chain of the kernel that leads to a chain of this program. */
export interface Jump {
  readonly table: Table;
  readonly from: string;
  /** In the format of `iptables -S`, without the chain. */
  readonly rule: string;
  /**
   * The rule is placed behind the jumps to these chains; a name that ends with a hyphen is a prefix. Undefined: before all rules.
   */
  readonly behind?: readonly string[];
}

interface RestoreInput {
  /** For `iptables-restore --noflush`: each table is replaced atomically. */
  readonly text: string;
  /** To be called when the kernel has accepted it. */
  written(): void;
}

/** Rules as `iptables-restore` reads them: one string, which is soon written and smaller than one for each rule. */
interface Lines {
  readonly text: string;
  readonly rules: number;
}

const linesOf = (chain: string, rules: readonly string[]): Lines => ({
  text: rules.map((rule) => `-A ${chain} ${rule}\n`).join(""),
  rules: rules.length,
});

const joined = (all: readonly Lines[]): Lines => ({
  text: all.map(({ text }) => text).join(""),
  rules: all.reduce((sum, { rules }) => sum + rules, 0),
});

/** Where the rules of a port are. Their text is kept once, in the chains: a node has those of all Services. */
interface PortPlace {
  /** Names without prefix. */
  readonly chains: readonly string[];
  readonly buckets: readonly Bucket[];
}

type Bucket = Omit<Dispatch, "rules">;

const placeOf = ({ chains, dispatch }: PortRules): PortPlace => ({
  chains: [...chains.keys()],
  buckets: dispatch.map(({ rules: _, ...bucket }) => bucket),
});

/** By name with prefix. */
type Chains = Map<string, Lines>;

/** Rules of all Services, of which changes are written. */
export class RuleSet {
  readonly jumps: readonly Jump[];
  readonly #settings: RuleSettings;
  readonly #wanted: Record<Table, Chains> = { nat: new Map(), filter: new Map() };
  readonly #known: Record<Table, Chains> = { nat: new Map(), filter: new Map() };
  readonly #dirty: Record<Table, Set<string>> = { nat: new Set(), filter: new Set() };
  readonly #counts: Record<Table, number> = { nat: 0, filter: 0 };
  readonly #services = new Map<string, readonly PortPlace[]>();
  /** By name and Service. */
  readonly #buckets = new Map<string, Map<string, Lines>>();
  readonly #bucketKinds: Record<Table, Record<Dispatch["destination"], Set<number>>> = {
    nat: { address: new Set(), nodePort: new Set() },
    filter: { address: new Set(), nodePort: new Set() },
  };
  /** Buckets that have changed since they were last put together, by name: one may have the rules of thousands of Services. */
  readonly #touched = new Map<string, Bucket>();

  constructor(settings: RuleSettings) {
    this.#settings = settings;
    this.jumps = jumpsOf(settings);
    for (const table of tables)
      for (const destination of ["address", "nodePort"] as const) this.#putDispatcher(table, destination);
    for (const [table, name, rules] of fixedChains(settings)) this.#put(table, name, rules);
  }

  #full(name: string): string {
    return `${this.#settings.prefix}${name}`;
  }

  #put(table: Table, name: string, rules: readonly string[]): void {
    this.#putChain(table, name, linesOf(this.#full(name), rules));
  }

  #putChain(table: Table, name: string, lines: Lines | undefined): void {
    const chain = this.#full(name);
    this.#counts[table] += (lines?.rules ?? 0) - (this.#wanted[table].get(chain)?.rules ?? 0);
    if (lines === undefined) this.#wanted[table].delete(chain);
    else this.#wanted[table].set(chain, lines);
    this.#dirty[table].add(chain);
  }

  #removeFrom(service: string, bucket: Bucket): void {
    const name = bucketName(bucket);
    this.#buckets.get(name)?.delete(service);
    this.#touched.set(name, bucket);
  }

  #addTo(service: string, dispatch: Dispatch): void {
    const name = bucketName(dispatch);
    const bucket = this.#buckets.getOrInsertComputed(name, () => new Map());
    const before = bucket.get(service) ?? { text: "", rules: 0 };
    const { text, rules } = linesOf(this.#full(name), dispatch.rules);
    // Concatenated, which does not copy the text of the thousands of rules before.
    bucket.set(service, { text: before.text + text, rules: before.rules + rules });
    this.#touched.set(name, dispatch);
  }

  #putBuckets(): void {
    const dispatchers = new Map<string, Pick<Bucket, "table" | "destination">>();
    for (const [name, { table, destination, bucket }] of this.#touched) {
      const content = this.#buckets.get(name);
      const kinds = this.#bucketKinds[table][destination];
      const isKnown = kinds.has(bucket);
      const isEmpty = content === undefined || content.size === 0;
      if (isEmpty) {
        this.#buckets.delete(name);
        kinds.delete(bucket);
      } else kinds.add(bucket);
      this.#putChain(table, name, isEmpty ? undefined : joined([...content].sort(byKey).map(([, lines]) => lines)));
      if (isKnown === isEmpty) dispatchers.set(`${table} ${destination}`, { table, destination });
    }
    for (const { table, destination } of dispatchers.values()) this.#putDispatcher(table, destination);
    this.#touched.clear();
  }

  #putDispatcher(table: Table, destination: Dispatch["destination"]): void {
    const numbers = [...this.#bucketKinds[table][destination]].sort((a, b) => a - b);
    const jump = (bucket: number): string => `-j ${this.#full(bucketName({ table, destination, bucket }))}`;
    if (destination === "nodePort") {
      const matches = ["tcp", "udp", "sctp"].flatMap((protocol) =>
        numbers.map((bucket) => `-p ${protocol} -m ${protocol} --dport ${portsOfBucket(bucket)} ${jump(bucket)}`),
      );
      this.#put(table, table === "nat" ? chainNames.nodePorts : chainNames.filterPorts, matches);
    } else {
      const of = (bucket: number): string =>
        this.#settings.family === "IPv4" ? `-d 0.0.0.${bucket}/0.0.0.255` : `-d ::${bucket.toString(16)}/::ff`;
      const ports = nodePortMatches(this.#settings).map(
        (match) => `${match} -j ${this.#full(table === "nat" ? chainNames.nodePorts : chainNames.filterPorts)}`,
      );
      const rules = numbers.map((bucket) => `${of(bucket)} ${jump(bucket)}`);
      this.#put(table, table === "nat" ? chainNames.services : chainNames.filter, [...rules, ...ports]);
    }
  }

  /** Number of rules by table. */
  count(table: Table): number {
    this.#putBuckets();
    return this.#counts[table];
  }

  /** Replaces the rules of a Service. @param rules of its ports; empty removes it */
  set(service: string, rules: readonly PortRules[]): void {
    for (const { chains, buckets } of this.#services.get(service) ?? []) {
      for (const name of chains) this.#putChain("nat", name, undefined);
      for (const one of buckets) this.#removeFrom(service, one);
    }
    if (rules.length === 0) this.#services.delete(service);
    else this.#services.set(service, rules.map(placeOf));
    for (const { chains, dispatch } of rules) {
      for (const [name, own] of chains) this.#put("nat", name, own);
      for (const one of dispatch) this.#addTo(service, one);
    }
  }

  /** Replaces the rules that answer pods that reach themselves through a Service. */
  setHairpin(rules: readonly string[]): void {
    this.#put("nat", chainNames.hairpin, rules);
  }

  /** Forgets what the kernel has; the next input writes every chain and removes those that exist and are not known. */
  forget(existing: ReadonlyMap<Table, readonly string[]>): void {
    for (const table of tables) {
      // `unknown` equals no rules, so that every chain counts as changed.
      this.#known[table] = new Map((existing.get(table) ?? []).map((name) => [name, unknown]));
      for (const name of [...this.#wanted[table].keys(), ...this.#known[table].keys()]) this.#dirty[table].add(name);
    }
  }

  /** @returns undefined when nothing has changed since the last `written` input */
  pending(): RestoreInput | undefined {
    this.#putBuckets();
    const parts = tables.map((table) => ({ table, ...changesOf(this.#wanted[table], this.#known[table], this.#dirty[table]) }));
    if (parts.every(({ changed, gone }) => changed.length + gone.length === 0)) return undefined;
    return {
      text: parts.map(({ table, changed, gone }) => restoreText(table, changed, gone)).join(""),
      written: () => {
        for (const { table, changed, gone } of parts) {
          for (const [name, chain] of changed) {
            this.#known[table].set(name, chain);
            if (this.#wanted[table].get(name) === chain) this.#dirty[table].delete(name); // else it has changed since
          }
          for (const name of gone) {
            this.#known[table].delete(name);
            if (!this.#wanted[table].has(name)) this.#dirty[table].delete(name);
          }
        }
      },
    };
  }
}

const unknown: Lines = { text: "unknown", rules: 0 };
const byKey = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1);

const bucketName = ({ table, destination, bucket }: Bucket): string =>
  `${table === "nat" ? "" : "F"}${destination === "address" ? "I" : "P"}-${bucket}`;

/** @param dirty names that are the same again are taken out */
function changesOf(wanted: Chains, known: Chains, dirty: Set<string>): { changed: [string, Lines][]; gone: string[] } {
  const changed: [string, Lines][] = [];
  const gone: string[] = [];
  for (const name of dirty) {
    const chain = wanted.get(name);
    const before = known.get(name);
    if (chain === undefined) {
      if (before !== undefined) gone.push(name);
      else dirty.delete(name);
    } else if (before?.text !== chain.text) changed.push([name, chain]);
    else dirty.delete(name);
  }
  return { changed, gone };
}

function restoreText(table: Table, changed: readonly [string, Lines][], gone: readonly string[]): string {
  if (changed.length + gone.length === 0) return "";
  // A line of this kind makes the chain, or empties it.
  const named = [...changed.map(([name]) => name), ...gone].map((name) => `:${name} - [0:0]\n`);
  const removed = gone.map((name) => `-X ${name}\n`);
  return [`*${table}\n`, ...named, ...changed.map(([, { text }]) => text), ...removed, "COMMIT\n"].join("");
}

/** Destinations that are node ports. */
function nodePortMatches({ family, nodePortNetworks, localhostNodePorts }: RuleSettings): string[] {
  const loopback = family === "IPv4" ? "127.0.0.0/8" : "::1/128";
  const networks = nodePortNetworks.filter((network) => network.includes(".") === (family === "IPv4"));
  const local = "-m addrtype --dst-type LOCAL";
  if (networks.length > 0) return networks.map((network) => `-d ${network} ${local}`);
  if (nodePortNetworks.length > 0) return []; // none in this family
  // The kernel does not route the loopback address of IPv6 to another interface.
  return [localhostNodePorts && family === "IPv4" ? local : `! -d ${loopback} ${local}`];
}

function fixedChains(settings: RuleSettings): [Table, string, string[]][] {
  const mark = `0x${(2 ** settings.masqueradeBit).toString(16)}`;
  const isMarked = `-m mark --mark ${mark}/${mark}`;
  const guardsLoopback = settings.family === "IPv4" && settings.localhostNodePorts;
  return [
    ["nat", chainNames.mark, [`-j MARK --set-xmark ${mark}/${mark}`]],
    [
      "nat",
      chainNames.postrouting,
      [
        `-m conntrack --ctstate DNAT -j ${settings.prefix}${chainNames.hairpin}`,
        `-m mark ! --mark ${mark}/${mark} -j RETURN`,
        `-j MARK --set-xmark 0x0/${mark}`, // the packet may pass here again, in a tunnel
        "-j MASQUERADE --random-fully",
      ],
    ],
    ["nat", chainNames.hairpin, []],
    [
      "filter",
      chainNames.forward,
      [
        // Packets that arrive after their entry in the connection table was removed would not be translated back: the client
        // would see the endpoint's address and reset its connection.
        "-m conntrack --ctstate INVALID -j DROP",
        `${isMarked} -j ACCEPT`,
        "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
      ],
    ],
    [
      "filter",
      chainNames.firewall,
      guardsLoopback
        ? // Routing of 127.0.0.0/8, which node ports on it need, would let neighbours on the network reach loopback listeners.
          ["! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"]
        : [],
    ],
  ];
}

function jumpsOf({ prefix }: RuleSettings): Jump[] {
  const fresh = "-m conntrack --ctstate NEW";
  return [
    { table: "nat", from: "PREROUTING", rule: `-j ${prefix}${chainNames.services}` },
    { table: "nat", from: "OUTPUT", rule: `-j ${prefix}${chainNames.services}` },
    { table: "nat", from: "POSTROUTING", rule: `-j ${prefix}${chainNames.postrouting}` },
    { table: "filter", from: "INPUT", rule: `-j ${prefix}${chainNames.firewall}` },
    { table: "filter", from: "INPUT", rule: `${fresh} -j ${prefix}${chainNames.filter}` },
    { table: "filter", from: "FORWARD", rule: `-j ${prefix}${chainNames.forward}` },
    { table: "filter", from: "FORWARD", rule: `${fresh} -j ${prefix}${chainNames.filter}` },
    { table: "filter", from: "OUTPUT", rule: `${fresh} -j ${prefix}${chainNames.filter}` },
  ];
}
