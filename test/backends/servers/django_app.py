"""Django as `app` on gunicorn, with paths of its own kind and one written as an expression."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, HttpResponseNotAllowed
from django.urls import path, re_path

settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="test",
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    LOGGING_CONFIG=None,
)


def reached(name, methods):
    def view(request, **_):
        if methods and request.method not in methods:
            return HttpResponseNotAllowed(methods)
        return HttpResponse("reached", headers={"X-Reached": name})

    return view


urlpatterns = [
    re_path(r"^login/?$", reached("login", ["POST"])),
    path("api/v1/export/<str:id>", reached("export", ["GET", "HEAD"])),
    path("admin/<path:rest>", reached("admin", None)),
]
app = get_wsgi_application()
