/** `--help` texts of benchmarks that have few flags; the others generate theirs from their flag tables. */
const texts: Readonly<Record<string, string>> = {
  api: `usage: ./cox bench api [--quick] [--pods <n>] [--seconds <n>] [--only <text>] [--fairness] [--cpu-prof <folder>]
       [--against <url> --token <t> --pid <p> [--etcd-pid <p>] [--ca <file>]]

CPU, latency and throughput of the API server: reads, lists, writes and watches over its own etcd.

  --quick              small sizes, 20 s: shows that all rows work
  --pods <n>           objects in the measured lists; default 5000
  --seconds <n>        for each row and server; default 8
  --only <text>        only rows whose name contains this
  --fairness           with priority and fairness
  --cpu-prof <folder>  writes a CPU profile of ours
  --against <url>      a second server that runs already, measured in alternating rounds
  --token <t>          its token, --pid and --etcd-pid its processes, --ca the file of its certificate authority
`,
  start: `usage: ./cox bench start [--against <url> --token <t> --pid <p> [--ca <file>]]

Time from the start of the API server's process to /readyz, and memory, empty and with 10,000 pods.

  --against <url>      a second server that runs already; its program is started again, with its flags, over another etcd
`,
  reasons: `usage: ./cox bench reasons [--rounds <n>] [--pods <n>] [--only <daemon>]

What it costs the daemons to keep the reasons of their decisions: two clusters do the same work in turn, one of them keeps
none. Exit code 1: more than 2 %. As root.

  --rounds <n>         pairs of rounds of each daemon; default 200
  --pods <n>           pods of a round; default 1000
  --only <daemon>      only daemons whose name contains this
`,
  codec: `usage: ./cox bench codec

CPU of the codecs for JSON and protobuf beside JSON.parse and JSON.stringify of the same value. Exit code 1: one is above its limit.
`,
  ports: `usage: ./cox bench ports

Two API servers that share a port beside one on a separate port: CPU of a get, and the connections that each of them has.
`,
  floor: `usage: ./cox bench floor

The least that watch events cost with Node's HTTP/2 over TLS: a server that only writes them, and their latency after a write to etcd.
Then the least that 1,000 new pods cost a controller: a process that only sends the creations and receives the events of pods, which become ready.
Last, the least that 200 preemptions cost a scheduler: a process that only sends the requests and receives the events of pods.
`,
};

/** @returns undefined for a benchmark that prints its own help, and for an unknown one */
export const usageOf = (verb: string): string | undefined => (Object.hasOwn(texts, verb) ? texts[verb] : undefined);
