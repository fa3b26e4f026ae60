"""The sign-in of express.js as a view of Django, `app` on gunicorn."""

import json
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="test", ROOT_URLCONF=__name__, MIDDLEWARE=[], LOGGING_CONFIG=None)
failures = os.open(os.environ["FAILURES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def read_fields(request):
    if request.content_type == "application/json":
        return json.loads(request.body)
    return request.POST


def login(request):
    try:
        fields = read_fields(request)
        email, password = fields.get("email"), fields.get("password")
    except (ValueError, AttributeError):
        return HttpResponse(status=400)
    if password == "right":
        response = HttpResponseRedirect("/")
        response.status_code = 303
        return response
    account = str(email).strip().lower()
    os.write(failures, f"{account}\n".encode())
    return HttpResponse(status=401)


urlpatterns = [path("login", login)]
app = get_wsgi_application()
