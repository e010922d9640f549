// Hands requests of the conformance kit, which knows no tokens, on to a daemon with one, and changes nothing else about them.
import http from 'node:http';

const [port, token] = process.argv.slice(2);
const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  // The kit calls the proxy by the proxy's own port; a name that is not this machine's goes on as it came.
  headers.host = headers.host.replace(/:\d+$/, `:${port}`);
  if (headers.origin) headers.origin = headers.origin.replace(/^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\d+$/, `$1:${port}`);
  const onward = http.request({ host: '127.0.0.1', port, method: request.method, path: request.url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  request.pipe(onward);
});
proxy.listen(0, '127.0.0.1', () => console.log(proxy.address().port));
