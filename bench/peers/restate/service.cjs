// A service with one no-op handler: node service.cjs PORT, with NODE_PATH naming the modules.
const restate = require("@restatedev/restate-sdk");

// The SDK uses this since Node 22; Node 20 is what Debian-based machines often have.
Promise.withResolvers ??= function () {
  const parts = {};
  parts.promise = new this((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

const bench = restate.service({ name: "Bench", handlers: { noop: async () => null } });

restate.serve({ services: [bench], port: Number(process.argv[2]) });
