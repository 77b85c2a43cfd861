# SPDX-License-Identifier: Apache-2.0
"""Amazon S3 as moto imitates it, with every signature verified by botocore. Arguments: port, folder of the modules of
PyPI, file for the access key that is made: its identifier and its secret, on two lines."""
import os
import sys
import urllib.parse

port, modules, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path.insert(0, modules)
# Without this, moto verifies nothing.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"
os.environ["MOTO_ALLOW_NONEXISTENT_REGION"] = "true"

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth  # noqa: E402
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402
from moto.iam.models import iam_backends  # noqa: E402
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: E402
from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: E402

backend = iam_backends["123456789012"]["aws"]
backend.create_user("us-east-1", "tests")
backend.put_user_policy(
    "tests", "all", '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}')
key = backend.create_access_key("tests")
with open(place + ".new", "w") as file:
    file.write("%s\n%s\n" % (key.access_key_id, key.secret_access_key))
os.rename(place + ".new", place)


class Presigned:
    """Verifies a signature in the query, which moto does not, and signs the request anew for moto, in a field."""

    def __init__(self, app):
        self.app = app
        self.credentials = Credentials(key.access_key_id, key.secret_access_key)

    def __call__(self, environ, start):
        path, _, query = environ["RAW_URI"].partition("?")
        stated = {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}
        if "X-Amz-Signature" not in stated:
            return self.app(environ, start)
        items = [item for item in query.split("&") if not item.startswith("X-Amz-Signature=")]
        names = stated["X-Amz-SignedHeaders"].split(";")
        # Those that WSGI gives another name have no HTTP_ before it.
        variables = [name.upper().replace("-", "_") for name in names]
        fields = {
            name: environ.get("HTTP_" + variable, environ.get(variable))
            for name, variable in zip(names, variables)}
        place = "http://%s%s" % (environ["HTTP_HOST"], path)
        request = AWSRequest(environ["REQUEST_METHOD"], place + "?" + "&".join(items), fields)
        request.context["timestamp"] = stated["X-Amz-Date"]
        region = stated["X-Amz-Credential"].split("/")[2]
        auth = S3SigV4QueryAuth(self.credentials, "s3", region)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        if auth.signature(text, request) != stated["X-Amz-Signature"]:
            start("403 Forbidden", [("Content-Length", "0")])
            return []
        rest = "&".join(item for item in items if not item.startswith("X-Amz-"))
        request = AWSRequest(environ["REQUEST_METHOD"], place + ("?" + rest if rest else ""))
        S3SigV4Auth(self.credentials, "s3", region).add_auth(request)
        for name, value in request.headers.items():
            environ["HTTP_" + name.upper().replace("-", "_")] = value
        environ["QUERY_STRING"] = rest
        environ["RAW_URI"] = environ["REQUEST_URI"] = path + ("?" + rest if rest else "")
        return self.app(environ, start)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_):
        pass


app = Presigned(DomainDispatcherApplication(create_backend_app))
make_server("127.0.0.1", port, app, threaded=True, request_handler=Quiet).serve_forever()
