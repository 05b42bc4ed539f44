import type { RequestListener } from "node:http";
import { EtcdError } from "@coxswain/apiserver/storage/etcd/errors";
import type { MemoryEtcd } from "../memory-etcd.ts";
import { ServedWatch } from "../served-watch.ts";
import { CallFailed, type GrpcServer, listenGrpc, type StreamCall, statusCodes, type UnaryCall } from "./grpc-server.ts";
import { ServedLeases } from "./leases.ts";
import {
  decodeDeleteRequest,
  decodeFirstNumber,
  decodePutRequest,
  decodeRangeRequest,
  decodeTxnRequest,
  encodeDeleteResponse,
  encodeHeader,
  encodeLease,
  encodeMemberList,
  encodeRangeResponse,
  encodeStatus,
  encodeTxnResponse,
  NotServed,
} from "./messages.ts";

const version = "3.5.13";

/**
 * Serves an in-memory store to API servers in other processes: the part of etcd's v3 API that they use, /health and /version. Not supported:
 * authentication, TLS, deletion of ranges, snapshots, multiple members.
 */
export async function serveEtcd(
  etcd: MemoryEtcd,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<GrpcServer> {
  const leases = new ServedLeases(etcd);
  const unary: Record<string, UnaryCall> = {
    "/etcdserverpb.KV/Range": (message) => encodeRangeResponse(etcd.range(decodeRangeRequest(message))),
    "/etcdserverpb.KV/Put": (message) =>
      encodeHeader(etcd.txn({ compare: [], success: [decodePutRequest(message)], failure: [] }).revision),
    "/etcdserverpb.KV/DeleteRange": (message) => {
      const before = etcd.revision;
      const { revision } = etcd.txn({ compare: [], success: [decodeDeleteRequest(message)], failure: [] });
      return encodeDeleteResponse(revision, revision > before ? 1 : 0);
    },
    "/etcdserverpb.KV/Txn": (message) => {
      const request = decodeTxnRequest(message);
      const response = etcd.txn(request);
      return encodeTxnResponse(response, response.succeeded ? request.success : request.failure);
    },
    "/etcdserverpb.KV/Compact": (message) => {
      etcd.compact(Number(decodeFirstNumber(message)));
      return encodeHeader(etcd.revision);
    },
    "/etcdserverpb.Lease/LeaseGrant": (message) => {
      const seconds = Number(decodeFirstNumber(message));
      return encodeLease(etcd.revision, leases.grant(seconds), seconds);
    },
    "/etcdserverpb.Lease/LeaseRevoke": (message) => {
      leases.end(decodeFirstNumber(message));
      return encodeHeader(etcd.revision);
    },
    "/etcdserverpb.Cluster/MemberList": () => encodeMemberList(etcd.revision, { clientUrls: [`http://${host}:${server.port}`] }),
    "/etcdserverpb.Maintenance/Status": () => encodeStatus(etcd.revision, { version, dbSizeBytes: 0 }),
  };
  const watch: StreamCall = (send) => {
    const served = new ServedWatch(etcd, { send: (_, message) => send(message), broken() {} });
    return { message: (message) => served.request(message), closed: () => served.close() };
  };
  const keepAlive: StreamCall = (send) => ({
    message(message) {
      const id = decodeFirstNumber(message);
      send(encodeLease(etcd.revision, id, leases.renew(id)));
    },
    closed() {},
  });
  const server = await listenGrpc(
    {
      unary: Object.fromEntries(
        Object.entries(unary).map(([path, call]) => [path, (message: Buffer) => answered(call, message)]),
      ),
      streams: { "/etcdserverpb.Watch/Watch": watch, "/etcdserverpb.Lease/LeaseKeepAlive": keepAlive },
      http1: answerPage,
    },
    host,
    port,
  );
  return {
    port: server.port,
    async close() {
      leases.close();
      await server.close();
    },
  };
}

const pages: Readonly<Record<string, object>> = {
  "/health": { health: "true", reason: "" },
  "/version": { etcdserver: version, etcdcluster: "3.5.0" },
};

const answerPage: RequestListener = ({ url = "" }, response) => {
  const page = Object.hasOwn(pages, url) ? pages[url] : undefined;
  response.writeHead(page === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(page === undefined ? "404 page not found\n" : JSON.stringify(page));
};

/** @throws CallFailed with etcd's status code for the error */
function answered(call: UnaryCall, message: Buffer): Uint8Array {
  try {
    return call(message);
  } catch (err) {
    if (err instanceof EtcdError) throw new CallFailed(statusCodes.outOfRange, err.message);
    if (err instanceof NotServed) throw new CallFailed(statusCodes.unimplemented, `etcd in memory: ${err.message}`);
    throw err;
  }
}
