import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

interface DnsLoadOptions {
  readonly address: string;
  readonly port: number;
  /** Queried in this order. */
  readonly names: readonly string[];
  readonly perSecond: number;
  readonly seconds: number;
}

interface DnsLoadResult {
  readonly answers: number;
  /** Queries not answered within half a second after the last query. */
  readonly lost: number;
  /** 99th percentile of the response times. */
  readonly p99Ms: number;
}

/** Enough clients to stay below the server's limit per client. */
const clients = 16;
const lastAnswersMs = 500;
const typeA = 1;
const classInternet = 1;

/** Sends queries at a constant rate (open loop), from several loopback addresses. */
export async function queryAtRate(options: DnsLoadOptions): Promise<DnsLoadResult> {
  const { names, perSecond, seconds } = options;
  const senders = await Promise.all(Array.from({ length: clients }, (_, i) => Sender.open(`127.0.0.${i + 1}`, options)));
  try {
    const total = perSecond * seconds;
    const begun = performance.now();
    for (let sent = 0; sent < total; await sleep(1)) {
      const due = Math.min(total, Math.floor(((performance.now() - begun) / 1_000) * perSecond));
      for (; sent < due; sent++) senders[sent % clients]?.send(names[sent % names.length] ?? "");
    }
    await sleep(lastAnswersMs);
    const tookMs = senders.flatMap((sender) => sender.tookMs).sort((a, b) => a - b);
    const p99Ms = tookMs[Math.ceil(tookMs.length * 0.99) - 1] ?? Number.NaN;
    return { answers: tookMs.length, lost: total - tookMs.length, p99Ms };
  } finally {
    for (const sender of senders) sender.close();
  }
}

/** A client: one socket, with the send times of its queries by ID. */
class Sender {
  readonly tookMs: number[] = [];
  readonly #socket: Socket;
  readonly #sentAt = new Map<number, number>();
  #last = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", () => {});
    socket.on("message", (message) => {
      const at = this.#sentAt.get(message.readUInt16BE(0));
      if (at === undefined || !hasAnswer(message)) return;
      this.#sentAt.delete(message.readUInt16BE(0));
      this.tookMs.push(performance.now() - at);
    });
  }

  static async open(from: string, { address, port }: DnsLoadOptions): Promise<Sender> {
    const socket = createSocket({ type: "udp4", recvBufferSize: 1 << 20 });
    socket.bind(0, from);
    await once(socket, "listening");
    socket.connect(port, address);
    await once(socket, "connect");
    return new Sender(socket);
  }

  send(name: string): void {
    this.#last = (this.#last + 1) & 0xffff;
    this.#sentAt.set(this.#last, performance.now());
    this.#socket.send(queryFor(this.#last, name));
  }

  close(): void {
    this.#socket.close();
  }
}

/** NOERROR with at least one record. */
const hasAnswer = (message: Buffer): boolean => (message.readUInt8(3) & 15) === 0 && message.readUInt16BE(6) > 0;

/** An A query for a name, in wire format. */
function queryFor(id: number, name: string): Buffer {
  const labels = name.split(".").flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(id, 0);
  head.writeUInt16BE(0x0100, 2); // RD (recursion desired)
  head.writeUInt16BE(1, 4); // one question
  return Buffer.concat([head, ...labels, Buffer.from([0, 0, typeA, 0, classInternet])]);
}
