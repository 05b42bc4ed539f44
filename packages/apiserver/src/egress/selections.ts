/**
 * Types of the EgressSelectorConfiguration.
 * Source: k8s.io/apiserver pkg/apis/apiserver/v1beta1/types.go
 */

export interface EgressSelection {
  readonly name?: string;
  readonly connection?: Connection;
}

export interface Connection {
  readonly proxyProtocol?: string;
  readonly transport?: Transport;
}

export interface Transport {
  readonly tcp?: TcpTransport;
  readonly uds?: UdsTransport;
}

export interface TcpTransport {
  readonly url?: string;
  readonly tlsConfig?: TlsConfig;
}

export interface TlsConfig {
  readonly caBundle?: string;
  readonly clientKey?: string;
  readonly clientCert?: string;
}

export interface UdsTransport {
  readonly udsName?: string;
}

export const selectionNames = ["cluster", "controlplane", "etcd"] as const;
export type SelectionName = (typeof selectionNames)[number];
